// Keeps "3 min ago" and "in 2 h" current; the exact time stays in the title. The words come with each time.
(() => {
  "use strict";
  const EVERY = 1000;
  const SOON = 600;
  const SIZES = [1, 60, 3600, 86400]; // of data-units; two of one, before it is said in the larger one

  const span = (seconds, units, precise) => {
    const number = (value, unit) => units[unit].replace("{count}", Math.floor(value)).replace(" ", "\u00a0");
    const unit = SIZES.findLastIndex((size, at) => !at || seconds >= 2 * size);
    const said = number(seconds / SIZES[unit], unit);
    return precise && unit === 1 ? `${said} ${number(seconds % 60, 0)}` : said;
  };

  const show = (time) => {
    const { said, over } = time.dataset;
    const units = time.dataset.units.split("|");
    const left = (Date.parse(time.dateTime) - Date.now()) / 1000;
    if (Number.isNaN(left)) return;
    const seconds = over ? left : Math.max(-left, 0);
    const text = over && left <= 0 ? over : said.replace("{span}", span(seconds, units, over && left < SOON));
    if (time.textContent !== text) time.textContent = text;
    if (over) time.classList.toggle("dp-soon", left < SOON);
  };
  setInterval(() => document.querySelectorAll("time.dp-when").forEach(show), EVERY);
})();
