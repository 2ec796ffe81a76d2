/** Deputy's REST API for TypeScript. `Deputy` is what most programs need; `rest` has every operation. */

import createClient, { type Client, type Middleware } from "openapi-fetch";
import type { components, paths } from "./schema.js";

export type Schemas = components["schemas"];
export type Run = Schemas["Run"];
export type Approval = Schemas["Approval"];
export type Event = Schemas["Event"];
export type Call = Schemas["Call"];
export type Problem = Schemas["Problem"];

const ENDED: readonly string[] = ["completed", "failed", "cancelled"];
const TRIES = 4;
const POLL_SECONDS = 30; // that one request waits for a call

/** A problem (RFC 9457). Programs go by `code`: RUN_ENDED, HUMAN_ONLY and so on, each with a page. */
export class DeputyError extends Error {
  constructor(readonly status: number, readonly problem: Partial<Problem>) {
    super(`${status} ${problem.code ?? ""}: ${problem.detail ?? ""}`);
  }
  get code(): string {
    return this.problem.code ?? "";
  }
}

/** What was waited for did not come in the time that the caller gave it. Nothing was cancelled. */
export class TimedOut extends Error {}

/** A Deputy, as the person a token belongs to. Every answer of 400 and above throws a DeputyError. */
export class Deputy {
  readonly rest: Client<paths>;
  private readonly url: string;
  private readonly headers: Record<string, string>;

  constructor(url: string, token: string, fetched: typeof fetch = fetch) {
    this.url = url.replace(/\/+$/, "");
    this.headers = { Authorization: `Token ${token}` };
    this.rest = createClient<paths>({ baseUrl: this.url, headers: this.headers, fetch: patient(fetched) });
    this.rest.use(raising);
  }

  /** Start a run of the person's own agent. */
  async start(project: string, goal: string, more: { context?: string; session_key?: string } = {}): Promise<Run> {
    return this.started({ project, goal, ...more });
  }

  /** Start a run that this program drives: it calls tools, and says how the run ended. */
  async drive(project: string, goal: string): Promise<Run> {
    return this.started({ project, goal, driver: "external" });
  }

  /** The run as it is now. */
  async run(id: string): Promise<Run> {
    return known(await this.rest.GET("/api/runs/{id}/", { params: { path: { id } } }));
  }

  /** The run once it has ended, followed and not polled. Throws TimedOut. */
  async wait(id: string, timeoutMs?: number): Promise<Run> {
    for await (const _ of this.events(id, { timeoutMs }));
    const found = await this.run(id);
    if (!ENDED.includes(found.status)) throw new TimedOut(`${id} is still ${found.status}`);
    return found;
  }

  /**
   * What has happened and what happens, until the run has ended or the time is over. Connects again where
   * the connection breaks, after the event it heard last.
   */
  async *events(id: string, options: { tree?: boolean; timeoutMs?: number } = {}): AsyncGenerator<Event> {
    const until = options.timeoutMs === undefined ? Infinity : Date.now() + options.timeoutMs;
    const url = `${this.url}/api/runs/${id}/${options.tree ? "tree" : "events"}/stream/?deltas=no`;
    let last = "";
    while (Date.now() < until) {
      const over = until === Infinity ? undefined : AbortSignal.timeout(Math.max(1, until - Date.now()));
      try {
        const headers = last ? { ...this.headers, "Last-Event-ID": last } : this.headers;
        const answer = await fetch(url, { headers, signal: over });
        if (answer.status === 204) return;
        if (!answer.ok) throw await problemOf(answer);
        for await (const [name, id, data] of blocks(answer.body!)) {
          if (name === "end") return;
          if (name === "message") {
            last = id;
            yield JSON.parse(data) as Event;
          }
        }
      } catch (error) {
        if (error instanceof DeputyError) throw error;
        if (Date.now() < until) await sleep(1000);
      }
    }
  }

  /** Answer a question of the run, or tell its agent something. */
  async say(id: string, content: string): Promise<void> {
    const params = { path: { id }, header: { "Idempotency-Key": crypto.randomUUID() } };
    await this.rest.POST("/api/runs/{id}/message/", { params, body: { content } as Schemas["MessageRequest"] });
  }

  /** End the run and everything below it. */
  async cancel(id: string, reason = ""): Promise<Run> {
    return known(await this.rest.POST("/api/runs/{id}/cancel/", { params: { path: { id } }, body: { reason } }));
  }

  /** What waits for a decision and is this person's to see, of one run or of all. */
  async approvals(run?: string): Promise<Approval[]> {
    const query = { status: ["pending" as const], ...(run ? { root: run } : {}) };
    return known(await this.rest.GET("/api/approvals/", { params: { query } })).results;
  }

  /** Let the call run with exactly the arguments that the approval shows. */
  async approve({ id, arguments_digest }: Approval, reason = ""): Promise<Approval> {
    const body = { arguments_digest, reason };
    return known(await this.rest.POST("/api/approvals/{id}/approve/", { params: { path: { id } }, body }));
  }

  /** Refuse the call; the agent is told why. */
  async reject({ id, arguments_digest }: Approval, reason: string): Promise<Approval> {
    const body = { arguments_digest, reason };
    return known(await this.rest.POST("/api/approvals/{id}/reject/", { params: { path: { id } }, body }));
  }

  /**
   * Call a tool in a run that this program drives, and wait until it has ended, however long somebody takes
   * to approve it. The same `callId` with the same words is the same call. Throws DeputyError, TimedOut.
   */
  async call(
    run: string,
    name: string,
    args: Record<string, unknown>,
    options: { callId?: string; timeoutMs?: number } = {},
  ): Promise<Call> {
    const call_id = options.callId ?? crypto.randomUUID().replaceAll("-", "");
    const until = options.timeoutMs === undefined ? Infinity : Date.now() + options.timeoutMs;
    const body = { call_id, name, arguments: args };
    let answer: { data?: unknown; response: Response } = await this.rest.POST("/api/runs/{id}/tool-calls/", {
      params: { path: { id: run } },
      body,
    });
    while (answer.response.status === 202) {
      if (Date.now() >= until) throw new TimedOut(`the call ${call_id} has not ended`);
      const wait = Math.max(1, Math.min(POLL_SECONDS, Math.floor((until - Date.now()) / 1000)));
      answer = await this.rest.GET("/api/runs/{id}/tool-calls/{call_id}/", {
        params: { path: { id: run, call_id }, query: { wait } },
      });
    }
    return answer.data as Call;
  }

  /** Say that a run that this program drives is done. */
  async complete(id: string, output: string): Promise<Run> {
    return known(await this.rest.POST("/api/runs/{id}/complete/", { params: { path: { id } }, body: { output } }));
  }

  private async started(body: Partial<Schemas["StartRequest"]>): Promise<Run> {
    const params = { header: { "Idempotency-Key": crypto.randomUUID() } };
    return known(await this.rest.POST("/api/runs/", { params, body: body as Schemas["StartRequest"] }));
  }
}

const raising: Middleware = {
  async onResponse({ response }) {
    if (response.status >= 400) throw await problemOf(response);
  },
};

async function problemOf(response: Response): Promise<DeputyError> {
  const said: unknown = await response.json().catch(() => ({}));
  return new DeputyError(response.status, (said ?? {}) as Partial<Problem>);
}

/**
 * Asks again where that is safe: 429 changed nothing; 503 and a broken connection leave open what happened,
 * so that only what reads, or has an Idempotency-Key, is repeated.
 */
export function patient(inner: typeof fetch, pause = sleep): (request: Request) => Promise<Response> {
  return async (request) => {
    const repeatable = request.method === "GET" || request.headers.has("Idempotency-Key");
    for (let attempt = 0; ; attempt++) {
      const last = attempt === TRIES - 1;
      try {
        const response = await inner(request.clone());
        const again = response.status === 429 || (response.status === 503 && repeatable);
        if (last || !again) return response;
        const said = Number(response.headers.get("Retry-After"));
        await pause(Math.min(said > 0 ? said : 2 ** attempt, 60) * 1000);
      } catch (error) {
        if (last || !repeatable) throw error;
        await pause(2 ** attempt * 1000);
      }
    }
  };
}

/** Server-sent events as [name, id, data]. */
async function* blocks(body: ReadableStream<Uint8Array>): AsyncGenerator<[string, string, string]> {
  const reader = body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader();
  let rest = "";
  let [name, id] = ["message", ""];
  let data: string[] = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop()!;
    for (const line of lines) {
      const at = line.indexOf(":");
      const field = at < 0 ? line : line.slice(0, at);
      const said = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
      if (field === "event") name = said;
      else if (field === "id") id = said;
      else if (field === "data") data.push(said);
      else if (line === "" && data.length) {
        yield [name, id, data.join("\n")];
        [name, data] = ["message", []];
      }
    }
  }
}

function known<T>({ data }: { data?: T }): T {
  if (data === undefined) throw new DeputyError(0, { detail: "Deputy answered with nothing." });
  return data;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
