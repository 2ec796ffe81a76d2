// Keeps "3 min ago" and "in 2 h" current; the exact time stays in the title. The words come with each time.
(() => {
  "use strict";
  const EVERY = 1000;
  const SOON = 600;
  const UNITS = [["day", 86400, 2], ["hour", 3600, 2], ["minute", 60, 2], ["second", 1, 0]];
  const language = document.documentElement.lang || "en";

  const number = (value, unit) =>
    new Intl.NumberFormat(language, { style: "unit", unit, unitDisplay: "short" }).format(value);

  const span = (seconds, precise) => {
    const [unit, size] = UNITS.find(([, size, least]) => seconds >= size * least);
    const said = number(Math.floor(seconds / size), unit);
    const rest = Math.floor(seconds % 60);
    return precise && unit === "minute" ? `${said} ${number(rest, "second")}` : said;
  };

  const show = (time) => {
    const { said, over } = time.dataset;
    const left = (Date.parse(time.dateTime) - Date.now()) / 1000;
    if (Number.isNaN(left)) return;
    const seconds = over ? left : Math.max(-left, 0);
    const text = over && left <= 0 ? over : said.replace("{span}", span(seconds, over && left < SOON));
    if (time.textContent !== text) time.textContent = text;
    if (over) time.classList.toggle("dp-soon", left < SOON);
  };
  setInterval(() => document.querySelectorAll("time.dp-when").forEach(show), EVERY);
})();
