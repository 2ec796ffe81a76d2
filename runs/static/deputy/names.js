// Gives fields that the theme leaves without a name the one that stands beside them: those in a table's cells
// the head of their column, searchable lists their label.
(() => {
  "use strict";
  const text = (element) => element?.textContent.replace(/\s+/g, " ").trim();

  const inCell = (field) => {
    const cell = field.closest("td");
    const head = cell?.closest("table")?.querySelectorAll("thead th")[cell.cellIndex];
    return cell?.dataset.label || text(head) || field.name;
  };

  const name = () => {
    document.querySelectorAll("td :is(input:not([type=hidden]), select, textarea)").forEach((field) => {
      if (!field.labels?.length && !field.ariaLabel && field.name !== "_selected_action") field.ariaLabel = inCell(field);
    });
    document.querySelectorAll("select.select2-hidden-accessible").forEach((select) => {
      const said = text(select.labels?.[0]) || select.ariaLabel || inCell(select);
      select.nextElementSibling?.querySelectorAll("[role=combobox], [role=textbox], [role=searchbox]").forEach((part) => {
        part.ariaLabel ??= said;
      });
    });
  };
  window.addEventListener("load", () => setTimeout(name));
  document.addEventListener("formset:added", () => setTimeout(name));
})();
