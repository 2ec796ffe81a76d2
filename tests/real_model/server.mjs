// A server that speaks like OpenAI's chat completions, with a small model on this machine's processor:
// node server.mjs MODEL.gguf; prints its port. The model is shown the tools, the task and what the tools have answered.
// A grammar lets it write nothing but one JSON object: a call of one of the tools, or, once there is a result, the answer.
// One thread: where others work on the same processor, several of them mostly wait for each other.
import http from "node:http";
import {getLlama, LlamaCompletion} from "node-llama-cpp";

const llama = await getLlama({gpu: false, build: "never", skipDownload: true, logLevel: "error"});
const model = await llama.loadModel({modelPath: process.argv[2]});
const context = await model.createContext({contextSize: 4096, threads: 1});
const completion = new LlamaCompletion({contextSequence: context.getSequence()});

const text = (content) => (typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join(""));

// What a grammar can be made of; the rest of a JSON Schema is checked by whoever gets the call.
function narrowed(schema) {
  if (schema.type === "array") return {type: "array", items: narrowed(schema.items ?? {type: "string"}), maxItems: 3};
  if (schema.enum) return {enum: schema.enum};
  return ["number", "integer", "boolean"].includes(schema.type) ? {type: schema.type} : {type: "string", maxLength: 100};
}

function choices(tools, begun) {
  const calls = tools.map(({function: {name, parameters}}) => ({
    type: "object",
    properties: {
      tool: {const: name},
      ...Object.fromEntries((parameters.required ?? []).map((key) => [key, narrowed(parameters.properties[key])])),
    },
  }));
  const answer = {type: "object", properties: {answer: {type: "string"}}};
  return {oneOf: begun ? [...calls, answer] : calls};
}

const EXAMPLE_TOOLS = ["- find_rooms(): List the rooms.", "- leave_note(for, title, text): Leave a note for people."];
const EXAMPLES = [
  'Task: Which rooms do we have?\nStep: {"tool": "find_rooms"}\nResult: {"rooms": ["Oak", "Elm"]}\nStep: {"answer": "Oak and Elm."}',
  'Task: Leave Tom a note with the title Milk and the text 2 litres.\n' +
    'Step: {"tool": "leave_note", "for": ["Tom"], "title": "Milk", "text": "2 litres"}\nResult: {"left": 1}\nStep: {"answer": "Done."}',
];

function prompt(messages, tools) {
  const described = tools.map(({function: {name, description, parameters}}) =>
    `- ${name}(${(parameters.required ?? []).join(", ")}): ${description}`);
  const said = messages.map((message) => {
    if (message.role === "user") return `Task: ${text(message.content)}`;
    if (message.role === "tool") return `Result: ${text(message.content).slice(0, 1500)}`;
    const calls = (message.tool_calls ?? []).map(({function: {name, arguments: given}}) =>
      JSON.stringify({tool: name, ...JSON.parse(given || "{}")}));
    return calls.length ? `Step: ${calls[0]}` : "";
  });
  return [
    "Do each task step by step. A step is a call of a tool. After the result of the last step, answer.",
    `Tools:\n${[...EXAMPLE_TOOLS, ...described].join("\n")}`,
    ...EXAMPLES,
    said.filter(Boolean).join("\n") + "\nStep:",
  ].join("\n\n");
}

function parsed(grammar, written) {
  try {
    return grammar.parse(written);
  } catch {
    return {answer: written}; // it did not come to an end
  }
}

async function complete({messages, tools = []}) {
  const grammar = await llama.createGrammarForJsonSchema(choices(tools, messages.some(({role}) => role === "tool")));
  const written = await completion.generateCompletion(prompt(messages, tools), {grammar, maxTokens: 160, temperature: 0});
  const step = parsed(grammar, written);
  if (step.tool === undefined) return {role: "assistant", content: step.answer};
  const {tool, ...given} = step;
  const call = {id: `call_${messages.length}`, type: "function", function: {name: tool, arguments: JSON.stringify(given)}};
  return {role: "assistant", content: null, tool_calls: [call]};
}

let last = Promise.resolve(); // one at a time
http.createServer(async (request, response) => {
  let body = "";
  for await (const piece of request) body += piece;
  last = last.then(() => complete(JSON.parse(body))).then(
    (message) => {
      const choice = {index: 0, message, finish_reason: message.tool_calls ? "tool_calls" : "stop"};
      const usage = {prompt_tokens: 0, completion_tokens: 0, total_tokens: 0};
      const said = {id: "chatcmpl-1", object: "chat.completion", created: 1, model: "small", choices: [choice], usage};
      response.writeHead(200, {"Content-Type": "application/json"}).end(JSON.stringify(said));
    },
    (error) => response.writeHead(500, {"Content-Type": "application/json"}).end(JSON.stringify({error: {message: String(error)}})),
  );
}).listen(0, "127.0.0.1", function () { console.log(this.address().port); });
