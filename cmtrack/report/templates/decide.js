  // Which runs may be the best: what cmtrack.comparison.inference.pairs decides from all rows, with the same draws.
  var drawn = {};
  // Standard normal numbers by column, as numpy's generator (PCG64, ziggurat) draws a table of so many columns.
  function normals(draws, size) {
    var state = BigInt(draws.state), step = BigInt(draws.step), times = 0x2360ed051fc65da44385df649fccf645n;
    var edge = 3.6541528853610088, area = 0.004928673233974655, unit = Math.pow(2, 52), high, low;
    var widths = new Float64Array(256), inner = new Float64Array(256), heights = new Float64Array(256), x = edge;
    inner[0] = edge * Math.exp(-edge * edge / 2) / area * unit;
    widths[0] = area / Math.exp(-edge * edge / 2) / unit;
    widths[255] = edge / unit;
    heights[0] = 1;
    heights[255] = Math.exp(-edge * edge / 2);
    for (var k = 254; k >= 1; k--) {
      var next = Math.sqrt(-2 * Math.log(area / x + Math.exp(-x * x / 2)));
      inner[k + 1] = next / x * unit;
      x = next;
      widths[k] = x / unit;
      heights[k] = Math.exp(-x * x / 2);
    }
    function word() {
      state = BigInt.asUintN(128, state * times + step);
      var mixed = BigInt.asUintN(64, (state >> 64n) ^ state), turn = state >> 122n;
      mixed = BigInt.asUintN(64, (mixed >> turn) | (mixed << (64n - turn)));
      high = Number(mixed >> 32n);
      low = Number(mixed & 0xffffffffn);
    }
    function share() { word(); return (high * 2097152 + (low >>> 11)) / 9007199254740992; }
    function one() {
      for (;;) {
        word();
        var layer = low & 255, size = (high & 0x1fffffff) * 8388608 + (low >>> 9), turned = low >>> 17 & 1;
        var x = (low & 256 ? -1 : 1) * size * widths[layer];
        if (size < inner[layer]) { return x; }
        if (layer) {
          if ((heights[layer - 1] - heights[layer]) * share() + heights[layer] < Math.exp(-x * x / 2)) { return x; }
          continue;
        }
        for (;;) {
          var beyond = -Math.log1p(-share()) / edge, down = -Math.log1p(-share());
          if (2 * down > beyond * beyond) { return turned ? -(edge + beyond) : edge + beyond; }
        }
      }
    }
    if (!drawn[size]) {
      drawn[size] = Array.from({ length: size }, function () { return new Float64Array(draws.times); });
      for (var n = 0; n < draws.times; n++) { for (var c = 0; c < size; c++) { drawn[size][c][n] = one(); } }
    }
    return drawn[size];
  }
  function table(size, of) {
    return Array.from({ length: size }, function (_, i) { return Float64Array.from({ length: size }, function (_, j) { return of(i, j); }); });
  }
  // The symmetric root of a covariance (Jacobi).
  function rootOf(matrix) {
    var size = matrix.length, a = matrix.map(function (row) { return row.slice(); }), v = table(size, function (i, j) { return i === j ? 1 : 0; });
    for (var sweep = 0; sweep < 60; sweep++) {
      var off = 0, all = 0;
      a.forEach(function (row, i) { row.forEach(function (x, j) { all += x * x; off += i === j ? 0 : x * x; }); });
      if (off <= 1e-32 * all) { break; }
      for (var p = 0; p < size; p++) {
        for (var q = p + 1; q < size; q++) {
          if (!a[p][q]) { continue; }
          var theta = (a[q][q] - a[p][p]) / (2 * a[p][q]), t = (theta < 0 ? -1 : 1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
          var c = 1 / Math.sqrt(t * t + 1), s = t * c;
          for (var k = 0; k < size; k++) { var x = a[k][p], y = a[k][q]; a[k][p] = c * x - s * y; a[k][q] = s * x + c * y; }
          for (k = 0; k < size; k++) { x = a[p][k]; y = a[q][k]; a[p][k] = c * x - s * y; a[q][k] = s * x + c * y; }
          for (k = 0; k < size; k++) { x = v[k][p]; y = v[k][q]; v[k][p] = c * x - s * y; v[k][q] = s * x + c * y; }
        }
      }
    }
    return table(size, function (i, j) {
      return a.reduce(function (all, row, k) { return all + v[i][k] * v[j][k] * Math.sqrt(Math.max(row[k], 0)); }, 0);
    });
  }
  function inErrors(gap, error) { return error > 0 ? gap / error : gap && Math.sign(gap) * Infinity; }
  // The normal statistic of the same tail as Student's (Hill 1970).
  function asNormal(t, degrees) {
    if (!isFinite(t) || !isFinite(degrees)) { return t; }
    var a = degrees - 0.5, b = 48 * a * a, y = a * Math.log1p(t * t / degrees);
    return Math.sign(t) * Math.sqrt(y) * (1 + (y + 3 + (((-0.4 * y - 3.3) * y - 24) * y - 85.5) / (0.8 * y * y + 100 + b)) / b);
  }
  // Of shares of the same rows which are hits, by run, and the mean and mean square of their weights; null of other
  // metrics. That of a share has two values inside its denominator, which is of whole classes, and is 0 outside.
  function hitsOf(values, psi, rows, data) {
    var inside = null, hits = values.map(function (value) { return psi[0].map(function () { return value === 1 ? 1 : 0; }); });
    var shares = values.every(function (value, r) {
      var own = psi[r], top = Math.max(0, Math.max.apply(null, own)), bottom = Math.min(0, Math.min.apply(null, own)), least = data.rounding * (top - bottom);
      if ((value === 0 || value === 1) && top - bottom <= data.rounding) { return true; }
      hits[r] = own.map(function (x) { return Math.abs(x - top) <= least ? 1 : 0; });
      var among = own.map(function (x, p) { return hits[r][p] || Math.abs(x - bottom) <= least ? 1 : 0; });
      if (!(value > 0 && value < 1 && bottom < 0 && top > 0) || own.some(function (x, p) { return !among[p] && Math.abs(x) > least; })) { return false; }
      if (!inside) {
        inside = among;
        var of = {};
        if (rows.classes.some(function (c, p) { if (!(c in of)) { of[c] = inside[p]; } return of[c] !== inside[p]; })) { return false; }
      }
      return among.every(function (x, p) { return x === inside[p]; }) &&
        Math.abs(weighed(hits[r], rows) / weighed(inside, rows) - value) <= data.rounding;
    });
    if (!shares || !inside) { return null; }
    var sums = [0, 0, 0];
    inside.forEach(function (x, p) { if (rows.weights[p] > 0) { sums = sums.map(function (sum, k) { return sum + x * rows.times[p] * Math.pow(rows.weights[p], k); }); } });
    return { further: [sums[1] / sums[0], sums[2] / sums[0]], of: hits.map(function (own) { return own.map(function (x, p) { return x && inside[p]; }); }) };
  }
  function weighed(numbers, rows) { return numbers.reduce(function (all, x, p) { return all + x * rows.times[p] * rows.weights[p]; }, 0); }
  // Of each run whether it may be the best, by its values and the influence of each row; places are those of their ids,
  // ends the error and the degrees of freedom of values that no row moves, and whether they are shares.
  function mayBeBest(values, psi, rows, better, places, data, ends) {
    var size = values.length, folded = better === "nearest zero", unit = better === "lower" ? -1 : 1, same = data.same;
    function close(r) { return folded ? -Math.abs(values[r]) : unit * values[r]; }
    var order = values.map(function (_, k) { return k; }).sort(function (a, b) { return close(b) - close(a) || places[a] - places[b]; });
    var hits = folded ? null : hitsOf(values, psi, rows, data), total = weighed(rows.times.map(function () { return 1; }), rows);
    var gain = order.map(close), signs = order.map(function (r) { return folded && values[r] >= 0 ? -1 : 1; }), most = Math.max.apply(null, values.map(Math.abs));
    var centred = order.map(function (r) {
      var mean = weighed(psi[r], rows) / total;
      return psi[r].map(function (x, p) { return (x - mean) * rows.weights[p]; });
    });
    var joint = table(size, function (i, j) {
      return j < i ? 0 : centred[i].reduce(function (all, x, p) { return all + rows.times[p] * x * centred[j][p]; }, 0) / (total * total);
    });
    function answerAlike(a, b) { return rows.answers[a].every(function (x, p) { return x === rows.answers[b][p]; }); }
    joint = table(size, function (i, j) {
      var a = order[i], b = order[j], both = hits || !ends[a][2] ? 0 : ends[a][0] * ends[b][0];
      return joint[Math.min(i, j)][Math.max(i, j)] + (both > 0 && answerAlike(a, b) ? both : 0);
    });
    var scale = same * Math.max(1e-300, Math.max.apply(null, joint.map(function (row, k) { return row[k]; })));
    function errorOf(i, j, sign) {
      var variance = joint[i][i] + joint[j][j] + sign * 2 * joint[i][j];
      return i !== j && variance > scale ? Math.sqrt(variance) : 0;
    }
    var sizes = {}, squared = {};  // effective rows of each class
    rows.classes.forEach(function (c, p) {
      sizes[c] = (sizes[c] || 0) + rows.times[p] * rows.weights[p];
      squared[c] = (squared[c] || 0) + rows.times[p] * rows.weights[p] * rows.weights[p];
    });
    Object.keys(sizes).forEach(function (c) { sizes[c] = sizes[c] * sizes[c] / squared[c]; });
    var single = Object.keys(sizes).length === 2 && Object.keys(sizes).some(function (c) { return sizes[c] <= 1; });
    function degreesOf(i, j, sign) {  // by Welch and Satterthwaite over the actual classes
      var spread = 0, parts = {}, tails = 0, second = total * total * (joint[i][i] + joint[j][j]);
      centred[i].forEach(function (x, p) {
        var d = rows.times[p] * (x + sign * centred[j][p]) * (x + sign * centred[j][p]), c = rows.classes[p];
        spread += d;
        parts[c] = (parts[c] || 0) + d;
      });
      Object.keys(parts).forEach(function (c) { tails += parts[c] * parts[c] / Math.max(sizes[c] - 1, 1); });
      if (!(spread > 1e-12 * second && tails > 0)) { return Infinity; }
      return single ? 1 : Math.max(spread * spread / tails, 1);
    }
    function signOf(a, b) {  // the exact sign test of few differing rows, as a normal statistic
      var counts = [0, 0], differing = 0, gains = [];
      rows.times.forEach(function (n, p) {
        var apart = hits ? hits.of[a][p] !== hits.of[b][p] : rows.answers[a][p] !== rows.answers[b][p];
        if (apart) { differing += n; gains.push([psi[a][p] - psi[b][p] + values[a] - values[b], n]); }
      });
      if (differing > data.few) { return Infinity; }
      var least = data.rounding * Math.max.apply(null, gains.map(function (own) { return Math.abs(own[0]); }));
      gains.forEach(function (own) { if (Math.abs(own[0]) > least) { counts[own[0] > 0 ? 0 : 1] += own[1]; } });
      return data.signs[counts[0]][counts[1]];
    }
    var error = table(size, function (i, j) {
      var a = order[i], b = order[j], own = errorOf(i, j, -1);  // of values at both ends of a range no draw tells it
      return own > 0 || hits || folded || i === j || answerAlike(a, b) ? own : Math.hypot(ends[a][0], ends[b][0]);
    });
    var statistic = table(size, function () { return 0; });
    for (var i = 0; i < size; i++) {
      for (var j = i + 1; j < size; j++) {
        var gap = gain[i] - gain[j], only = [0, 0], squares = 0, a = order[i], b = order[j];
        gap = error[i][j] === 0 && Math.abs(gap) <= same * most ? 0 : gap;  // rounding is no lead
        var found = inErrors(gap, error[i][j]);
        if (folded) {
          var sign = signs[i] * signs[j], both = Math.sign(gap) * (Math.abs(gain[i]) + Math.abs(gain[j]));
          found = inErrors(gap, errorOf(i, j, -sign));
          var other = inErrors(both, errorOf(i, j, sign)), weaker = Math.abs(other) < Math.abs(found);
          error[i][j] = error[j][i] = weaker ? Math.abs(gap / other) : errorOf(i, j, -sign);
          found = weaker ? other : found;
        }
        rows.times.forEach(function (n, p) {
          if (hits && hits.of[a][p] !== hits.of[b][p]) { only[hits.of[a][p] ? 0 : 1] += n * rows.weights[p]; squares += n * rows.weights[p] * rows.weights[p]; }
        });
        if (hits) {  // one further row of the mean weight counts as discordant
          var rest = only[0] + only[1], worth = (rest + hits.further[0]) / (squares + hits.further[1]);
          found = rest > 0 ? unit * (only[0] - only[1]) * Math.sqrt(worth / rest) : 0;
        }
        else {
          found = asNormal(found, Math.min(degreesOf(i, j, -1), folded ? degreesOf(i, j, 1) : Infinity,
            ends[a][2] || !(errorOf(i, j, -1) > 0) ? ends[a][1] : Infinity, ends[b][2] || !(errorOf(i, j, -1) > 0) ? ends[b][1] : Infinity));
        }
        if (!folded) { found = Math.sign(found) * Math.min(Math.abs(found), signOf(a, b)); }
        statistic[i][j] = found;
        statistic[j][i] = -found;
      }
    }
    var alpha = 1 - data.level, first = alpha / 10, errors = null, draws = 2 * data.draws.times;
    function leads(i, rivals) {  // of each draw, with both signs, the largest lead over run i
      var out = new Float64Array(draws);
      rivals.forEach(function (j) {
        for (var n = 0, half = data.draws.times, theirs = errors[j], ours = errors[i], scale = 1 / error[i][j]; n < half; n++) {
          var lead = (theirs[n] - ours[n]) * scale;
          if (lead > out[n]) { out[n] = lead; }
          if (-lead > out[n + half]) { out[n + half] = -lead; }
        }
      });
      return out;
    }
    var tied = order.map(function (_, i) {
      var most = -Infinity, rivals = order.map(function (_, j) { return j; }).filter(function (j) { return j !== i && error[i][j] > 0; });
      order.forEach(function (_, j) { if (j !== i) { most = Math.max(most, statistic[j][i]); } });
      if (!(most > 0) || most < data.z) { return true; }
      // at size 2 and with no error nothing is drawn; nor where far fewer draws reach it than would count
      if (size === 2 || !rivals.length || (size - 1) * Math.exp(-most * most / 2) / most / 2.5 < (alpha - first) / 3) { return false; }
      errors = errors || errorsOf(joint, data, signs);
      var all = leads(i, rivals).sort(), bound = Math.max(all[Math.min(Math.ceil((1 - alpha / 10) * draws), draws) - 1], data.z);
      var near = rivals.filter(function (j) { return statistic[j][i] + bound > 0; });
      all = near.length < rivals.length ? leads(i, near) : all;
      return first + (1 + all.filter(function (lead) { return lead >= most; }).length) / (1 + draws) > alpha;
    });
    return values.map(function (_, r) { return tied[order.indexOf(r)]; });
  }
  // Normal errors of a covariance by run; runs whose difference has no error get the same ones.
  function errorsOf(joint, data, signs) {
    var size = joint.length, root = rootOf(joint), z = normals(data.draws, size), most = Math.max.apply(null, joint.map(function (row, k) { return row[k]; }));
    return joint.map(function (row, r) {
      var k = joint.findIndex(function (own, j) { return row[r] + own[j] - 2 * row[j] <= data.same * most; }), out = new Float64Array(data.draws.times);
      z.forEach(function (column, c) { for (var n = 0, by = signs[r] * root[c][k]; n < out.length; n++) { out[n] += by * column[n]; } });
      return out;
    });
  }
