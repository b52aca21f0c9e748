  // Numbers of the six counts from recorded steps, and their intervals: what cmtrack.metrics does, no formula of its own.
  function unpacked(text) {
    var bytes = Uint8Array.from(atob(text), function (c) { return c.charCodeAt(0); });
    return new Float64Array(bytes.buffer);
  }
  function dense(pairs, size) {
    var out = new Float64Array(size), at = -1;
    for (var k = 0; k < pairs.length; k += 2) { at += pairs[k]; out[at] = pairs[k + 1]; }
    return out;
  }
  function sum(numbers) { return numbers.reduce(function (a, b) { return a + b; }, 0); }
  // Values of all steps, with what a small step h of count k adds to them (as a complex step does; k < 0: none).
  function stepped(steps, six, k, h) {
    var re = new Float64Array(steps.length), im = new Float64Array(steps.length);
    steps.forEach(function (step, n) {
      var a = step[1], b = step[2], sign = step[0];
      if (sign === "count") { re[n] = six[n]; im[n] = n === k ? h : 0; }
      else if (sign === "number") { re[n] = a; }
      else if (sign === "+") { re[n] = re[a] + re[b]; im[n] = im[a] + im[b]; }
      else if (sign === "-") { re[n] = re[a] - re[b]; im[n] = im[a] - im[b]; }
      else if (sign === "*") { re[n] = re[a] * re[b]; im[n] = re[a] * im[b] + im[a] * re[b]; }
      else if (sign === "/") { re[n] = re[a] / re[b]; im[n] = (im[a] - re[n] * im[b]) / re[b]; }
      else if (re[a] === 0 && im[a] !== 0) { re[n] = Math.sqrt(Math.abs(im[a]) / 2); im[n] = im[a] > 0 ? re[n] : -re[n]; }
      else { re[n] = Math.sqrt(re[a]); im[n] = im[a] === 0 ? 0 : im[a] / (2 * re[n]); }
    });
    return { re: re, im: im };
  }
  function slopes(formulas, place, six, used) {
    var h = 1e-30 * sum(six);
    var found = six.map(function (_, k) { return used(k) ? stepped(formulas.steps, six, k, h).im[place] / h : 0; });
    return found.every(isFinite) ? found : null;
  }
  function dot(a, b) { return sum(a.map(function (x, k) { return x * b[k]; })); }
  function settled(value, low, high, rounding) {
    if (!isFinite(value)) { return value; }
    if (isFinite(low) && Math.abs(value - low) <= rounding * Math.max(1, Math.abs(low)) && (low || low < 0)) { return low; }
    if (isFinite(high) && Math.abs(value - high) <= rounding * Math.max(1, Math.abs(high)) && (high || low < 0)) { return high; }
    if (low < 0 && high > 0 && Math.abs(value) <= rounding) { return 0; }
    return Math.min(Math.max(value, low), high);
  }
  function wilson(share, n, z, rounding) {
    if (!(n > 0) || isNaN(share)) { return null; }
    share = settled(share, 0, 1, rounding);
    var centre = share + z * z / (2 * n), scale = 1 + z * z / n;
    var reach = z * Math.sqrt(share * (1 - share) / n + z * z / (4 * n * n));
    var low = share === 0 ? 0 : Math.max(0, (centre - reach) / scale);
    var high = share === 1 ? 1 : Math.min(1, (centre + reach) / scale);
    return [Math.min(low, share), Math.max(high, share)];
  }
  function onScale(scale, value, error, low, high, data) {
    if (!isFinite(value) || !isFinite(error)) { return null; }
    if (scale === "atanh") { low = -1; high = 1; }
    if (scale === "logit") { low = 0; high = 1; }
    value = settled(value, low, high, data.rounding);
    if (error <= (value === low || value === 0 || value === high ? data.rounding : 0)) { return null; }
    var reach = data.z * error, centre, ends;
    if (scale === "wald") { return [Math.max(low, value - reach), Math.min(high, value + reach)]; }
    if (scale === "log") { return value > 0 ? [value * Math.exp(-reach / value), Math.min(high, value * Math.exp(reach / value))] : null; }
    if (value === low || value === high) { return null; }
    if (scale === "atanh") {
      centre = Math.atanh(value); reach /= 1 - value * value;
      ends = [Math.tanh(centre - reach), Math.tanh(centre + reach)];
    } else {
      centre = Math.log(value / (1 - value)); reach /= value * (1 - value);
      ends = [1 / (1 + Math.exp(reach - centre)), 1 / (1 + Math.exp(-centre - reach))];
    }
    return [Math.min(ends[0], value), Math.max(ends[1], value)];
  }
  function withinBounds(scale, value, error, low, high, n, data) {
    var span = high - low, share = (value - low) / span, found = null;
    if (scale === "log" || !isFinite(span) || !isFinite(value) || !isFinite(error) ||
        (error > 0 && Math.min(value - low, high - value) >= Math.min(data.near * error, data.edge * span))) {
      return onScale(scale, value, error, low, high, data);
    }
    if (share > 0 && share < 1 && error > 0) {
      found = wilson(share, share * (1 - share) * Math.pow(span / error, 2), data.z, data.rounding);
    } else if (n > 0) {
      var reach = data.z * data.z / (n + data.z * data.z);
      found = [Math.max(0, share - reach), Math.min(1, share + reach)];
    }
    if (!found) { return null; }
    return [Math.min(value, low + span * found[0]), Math.max(value, found[1] === 1 ? high : low + span * found[1])];
  }
  function sizeOfShare(share, error, known) {
    return share > 0 && share < 1 && error > 0 ? share * (1 - share) / (error * error) : known;
  }
  // Value and interval of a metric of six counts; squares are the sums of squared weights.
  function judged(metric, formulas, six, squares, data) {
    var total = sum(six), fractional = squares.some(function (s, k) { return s !== six[k]; });
    var low = metric.low === null ? -Infinity : metric.low, high = metric.high === null ? Infinity : metric.high;
    var raw = stepped(formulas.steps, six, -1, 0).re[metric.place], out = { value: NaN, low: NaN, high: NaN };
    if (!isFinite(raw)) { return out; }
    function effective(inside) {
      var w = inside ? dot(six, inside) : total, s = inside ? dot(squares, inside) : sum(squares);
      return s > 0 ? w * w / s : 0;
    }
    function errorOf(slope) {
      if (!slope) { return null; }
      var mean = dot(six, slope);  // of psi, total times the slope
      return Math.sqrt(sum(slope.map(function (d, k) { return squares[k] * Math.pow(total * d - mean, 2); }))) / total;
    }
    function inUse() { return slopes(formulas, metric.place, six, function (k) { return six[k] !== 0; }); }
    function reach() {  // of one sample more in any cell
      var all = slopes(formulas, metric.place, six, function () { return true; });
      return all ? Math.max.apply(null, all) - Math.min.apply(null, all) : 0;
    }
    var value = settled(raw, low, high, data.rounding), everyone = effective(null), ends = null, n, error, moved;
    out.value = value;
    if (metric.interval === "count") {
      error = fractional ? errorOf(inUse()) : null;
      n = error === null ? everyone : sizeOfShare(raw / total, error / total, everyone);
      ends = n > 0 ? wilson(raw / total, n, data.z, data.rounding) : null;
      ends = ends && [ends[0] * total, ends[1] * total];
      out.value = raw;
    } else if (metric.interval === "wilson" && metric.below) {
      n = effective(metric.below);
      n = fractional ? sizeOfShare(raw, errorOf(inUse()), n) : n;
      ends = wilson(value, n, data.z, data.rounding);
    } else {
      error = errorOf(inUse());
      if (metric.interval === "wilson") {
        moved = reach();
        n = error !== null && raw > 0 && raw < 1 && error > 0 ? raw * (1 - raw) / (error * error)
          : moved > 0 ? everyone / total / moved : null;
        ends = n === null ? null : wilson(value, n, data.z, data.rounding);
      } else if (error !== null) {
        n = null;
        if (isFinite(high - low) && (metric.interval === "logit" || error <= data.rounding)) {
          moved = reach();
          n = moved > 0 ? Math.min(everyone, everyone / total / moved * (high - low)) : everyone;
        }
        if (error <= data.rounding && (value === low || value === 0 || value === high || isFinite(high - low))) { error = 0; }
        ends = withinBounds(metric.interval, value, error, low, high, n, data);
      }
    }
    if (ends) { out.low = ends[0]; out.high = ends[1]; }
    var width = Math.max(value - out.low, out.high - value);
    if ((value === low || value === high) && width > 0 && !(error > data.rounding)) {  // error and degrees of freedom where no row moves it
      out.end = [width / data.z, Math.max(data.z * data.z * ((high - low) / width - 1) - 1, 1), metric.interval === "wilson"];
    }
    return out;
  }
  // Of each pair of K classes the place among the six counts: tp fn imp fp tn imn.
  function placesIn(inside, modes) {
    var size = inside.length, pairs = modes.map(function (mode) {
      return Array.isArray(mode) ? new Set(mode.map(function (pair) { return pair[0] * size + pair[1]; })) : null;
    });
    return Uint8Array.from({ length: size * size }, function (_, at) {
      var i = Math.floor(at / size), j = at % size, group = inside[i] === "1" ? 0 : 1, mode = modes[group];
      if (inside[i] !== inside[j]) { return group ? 3 : 1; }
      var accepted = mode === "relaxed" || (mode === "strict" ? i === j : pairs[group].has(at));
      return (group ? 4 : 0) + (accepted ? 0 : group ? 1 : 2);
    });
  }
  // The six counts of a division.
  function reduced(counts, places) {
    var six = [0, 0, 0, 0, 0, 0];
    counts.forEach(function (count, at) { six[places[at]] += count; });
    return six;
  }
  // The six counts where rows of at least the threshold at this place are positive; bins by channel.
  function sixAt(bins, place) {
    var above = bins.map(function (own) { return sum(Array.from(own.subarray(place + 1))); });
    var below = bins.map(function (own) { return sum(Array.from(own.subarray(0, place + 1))); });
    return [above[0], below[0] + below[1], above[1], above[2] + above[3], below[2], below[3]];
  }
  // The place among them of a row on a side, by the place of its score and whether its own group is not accepted (128).
  function placeAt(positive, score, place) {
    var called = (score & 127) > place, mismatch = score > 127;
    return positive ? (called ? (mismatch ? 2 : 0) : 1) : called ? 3 : mismatch ? 5 : 4;
  }
  // Counts where positives are another share of all rows; by also their squares. The first three counts are theirs.
  function factorsOf(six, share) {
    var positives = six[0] + six[1] + six[2], total = sum(six);
    return share === null ? [1, 1] : [share * total / positives, (1 - share) * total / (total - positives)];
  }
  function movedBy(six, factors, power) { return six.map(function (n, k) { return n ? n * Math.pow(factors[k < 3 ? 0 : 1], power) : 0; }); }
  // Costs in the order of the six counts.
  function meanCost(six, costs) { return dot(six, costs) / sum(six); }

  // Numbers as cmtrack.report.formatting writes them.
  // The shortest decimal that stands for the number is rounded, half to even.
  function fixed(value, places) {
    var parts = Math.abs(value).toExponential().split("e"), digits = parts[0].replace(".", "");
    var point = Number(parts[1]) + 1 + places, text = Math.abs(value).toFixed(places);
    if (point < digits.length) {
      var kept = Number(digits.slice(0, Math.max(point, 0)) || 0), next = point < 0 ? 0 : Number(digits[point]);
      var up = next > 5 || (next === 5 && (digits.length > point + 1 || kept % 2 === 1));
      text = ((kept + (up ? 1 : 0)) / Math.pow(10, places)).toFixed(places);
    }
    return (value < 0 && /[1-9]/.test(text) ? "−" : "") + text;
  }
  function placesOf(low, high) {
    if (!isFinite(low) || !isFinite(high) || high - low < 1e-7) { return 3; }
    return Math.min(7, Math.max(3, 1 - Math.floor(Math.log10(high - low))));
  }
  function whole(value) { return fixed(value, 0).replace(/\B(?=(\d{3})+$)/g, ","); }
  function shownNumber(value, low, high) {
    if (isNaN(value)) { return "undefined"; }
    if ((Number.isInteger(value) && Math.abs(value) >= 2) || Math.abs(value) >= 1000) { return whole(value); }
    if (value !== 0 && Math.abs(value) <= 5e-4) {
      var text = value.toPrecision(2), tiny = Math.abs(value) < 1e-4;
      if (tiny) { text = value.toExponential(1).replace(/\.0e/, "e").replace(/e([+-])(\d)$/, "e$10$2"); }
      return (tiny ? text : String(Number(text))).replace(/-/g, "−");
    }
    return fixed(value, placesOf(low, high));
  }
  function shownInterval(low, high) {
    if (!isFinite(low) || !isFinite(high)) { return ""; }
    var places = placesOf(low, high);
    return "[" + [low, high].map(function (end) {  // one that is not 0 is not printed as 0
      var size = Math.abs(end), tiny = size > 1e-9 && size < 0.5 * Math.pow(10, -places);
      return fixed(end, tiny ? -Math.floor(Math.log10(size)) : places);
    }).join(", ") + "]";
  }
