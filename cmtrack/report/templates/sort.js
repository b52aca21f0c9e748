  function key(row, column) {
    var cell = row.cells[column];
    if (!cell) { return ""; }
    var text = cell.hasAttribute("data-sort") ? cell.getAttribute("data-sort") : cell.textContent.trim();
    var value = Number(text.replace(/,/g, ""));
    return text === "" ? "" : isNaN(value) ? text.toLowerCase() : value;
  }
  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") { return a - b; }
    return String(a).localeCompare(String(b), undefined, { numeric: true });
  }
  document.querySelectorAll("table.sortable").forEach(function (table) {
    var heads = Array.from(table.tHead.rows[0].cells), body = table.tBodies[0];
    heads.forEach(function (head, column) {
      if (!head.textContent || head.className === "scale") { return; }
      var button = document.createElement("button");
      button.className = "sort";
      button.append.apply(button, Array.from(head.childNodes));
      head.appendChild(button);
      button.addEventListener("click", function () {
        var down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        Array.from(body.rows).map(function (row) { return [key(row, column), row]; }).sort(function (a, b) {
          if (a[0] === "" || b[0] === "") { return (a[0] === "") - (b[0] === ""); }
          return down ? compare(b[0], a[0]) : compare(a[0], b[0]);
        }).forEach(function (pair) { body.appendChild(pair[1]); });
      });
    });
  });
  /* A box that scrolls and has nothing to tab to can be reached by keys all the same. */
  function reachable() {
    document.querySelectorAll(".scroll, pre").forEach(function (box) {
      if (box.scrollWidth > box.clientWidth && !box.querySelector("a, button")) { box.tabIndex = 0; } else { box.removeAttribute("tabindex"); }
    });
  }
  reachable();
  addEventListener("resize", reachable);
  document.addEventListener("toggle", reachable, true);
  /* An anchor alone does not scroll in a frame whose address is a blob. */
  document.querySelectorAll("nav.contents a, a.skip, a.cell").forEach(function (link) {
    link.addEventListener("click", function (event) {
      var place = document.getElementById(link.getAttribute("href").slice(1)), folded = place.closest("details.rows");
      event.preventDefault();
      if (folded) { folded.open = true; place = folded.firstElementChild; }
      place.scrollIntoView();
      if (!folded) { place.tabIndex = -1; }
      place.focus({ preventScroll: true });
    });
  });
