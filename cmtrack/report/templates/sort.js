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
  document.querySelectorAll("button.unfold").forEach(function (button) {
    var table = button.previousElementSibling;
    function unfold() { table.classList.remove("folded"); button.hidden = true; }
    table.classList.add("folded");
    button.hidden = false;
    button.addEventListener("click", unfold);
    table.tHead.addEventListener("click", unfold);
  });
  /* Rows of several lines where a table is wider than the page: each cell after the first says its head. */
  function nameCells(table) {
    var heads = Array.from(table.tHead.rows[0].cells, function (head) { return head.className === "scale" ? "" : head.textContent.replace(/ \(.*/, ""); });
    Array.from(table.querySelectorAll("tbody tr, tfoot tr")).forEach(function (row) {
      Array.from(row.cells).forEach(function (cell, k) {
        if (k && heads[k] && !cell.dataset.head && cell.className !== "run" && !cell.querySelector(".badge")) { cell.dataset.head = heads[k]; }
      });
    });
  }
  function fit() {
    document.querySelectorAll("table.sortable, table.answer").forEach(function (table) {
      table.classList.remove("cards");
      if (innerWidth < 700 && table.parentNode.scrollWidth > table.parentNode.clientWidth) {
        nameCells(table);
        table.classList.add("cards");
      }
    });
  }
  fit();
  addEventListener("resize", fit);
  document.addEventListener("toggle", fit, true);
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
      for (var box = place.closest("details"); box; box = box.parentNode.closest("details")) { box.open = true; }
      if (folded) { place = folded.firstElementChild; }
      place.scrollIntoView();
      if (!folded) { place.tabIndex = -1; }
      place.focus({ preventScroll: true });
    });
  });
