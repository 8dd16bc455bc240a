"use strict";
// Charts and playback of the report. Both read the JSON that stands in the page.
const report = JSON.parse(document.getElementById("report-data").textContent);
const element = (name) => document.getElementById(name);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Charts

function drawCharts() {
  const axis = { gridcolor: colour("--soft"), linecolor: colour("--soft"), zerolinecolor: colour("--soft") };
  for (const [name, chart] of Object.entries(report.charts)) {
    const place = element(name);
    const layout = { ...chart.layout, paper_bgcolor: "transparent", plot_bgcolor: "transparent" };
    layout.font = { color: colour("--ink") };
    for (const key of Object.keys(layout)) {
      if (/^[xy]axis/.test(key)) layout[key] = { ...axis, ...layout[key] };
    }
    if (layout.polar) {
      const { radialaxis, angularaxis } = layout.polar;
      layout.polar = { ...layout.polar, bgcolor: "transparent", radialaxis: { ...axis, ...radialaxis }, angularaxis: { ...axis, ...angularaxis } };
    }
    Plotly.react(place, chart.data, layout, { responsive: true, displaylogo: false });
  }
}

// Episodes

function unpack({ scale, shape, data }) {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const whole = new DataView(bytes.buffer);
  const values = new Float64Array(bytes.length / 2);
  for (let i = 0; i < values.length; i++) values[i] = scale * whole.getInt16(2 * i, true);
  return { values, shape };
}

function unpackEpisode(packed) {
  const episode = { ...packed };
  for (const name of ["times", "place", "heading", "seen"]) episode[name] = unpack(packed[name]).values;
  episode.vessels = packed.place.shape[1];
  episode.duration = episode.times[episode.times.length - 1];
  if (packed.flow) {
    episode.flow = { points: unpack(packed.flow.points).values, velocity: unpack(packed.flow.velocity).values };
  }
  episode.box = boxOf(episode);
  episode.gaps = Array.from(episode.times, (_, row) => gapsAt(episode, row));
  return episode;
}

function boxOf(episode) {
  const points = [...episode.goals, ...episode.buoys];
  for (let i = 0; i < episode.place.length; i += 2) points.push([episode.place[i], episode.place[i + 1]]);
  const of = (choose, axis) => points.reduce((best, point) => choose(best, point[axis]), points[0][axis]);
  const margin = 5;
  const low = [of(Math.min, 0) - margin, of(Math.min, 1) - margin];
  const high = [of(Math.max, 0) + margin, of(Math.max, 1) + margin];
  // A meeting on one line would fill a map of its shape with a single hull.
  const widen = (axis, least) => {
    const missing = Math.max(least - (high[axis] - low[axis]), 0) / 2;
    low[axis] -= missing;
    high[axis] += missing;
  };
  widen(1, (high[0] - low[0]) / 0.75);
  widen(0, (high[1] - low[1]) * 0.4);
  return { south: low[0], north: high[0], west: low[1], east: high[1] };
}

function poseAt(episode, vessel, row, share) {
  const of = (index) => index * episode.vessels + vessel;
  const now = of(row), next = of(Math.min(row + 1, episode.last[vessel]));
  const later = row >= episode.last[vessel] ? now : next;
  const mix = (values, i, j) => values[i] + share * (values[j] - values[i]);
  let turn = episode.heading[later] - episode.heading[now];
  turn -= 2 * Math.PI * Math.round(turn / (2 * Math.PI));
  return {
    x: mix(episode.place, 2 * now, 2 * later),
    y: mix(episode.place, 2 * now + 1, 2 * later + 1),
    heading: episode.heading[now] + share * turn,
  };
}

// Gaps of each vessel to the nearest vessel and buoy; null where there is none under way.
function gapsAt(episode, row) {
  const poses = Array.from({ length: episode.vessels }, (_, i) => poseAt(episode, i, row, 0));
  const least = (gaps) => (gaps.length ? Math.min(...gaps) : null);
  return poses.map((own, i) => {
    if (row > episode.last[i]) return { vessel: null, buoy: null };
    const others = poses.filter((_, j) => j !== i && row <= episode.last[j]);
    return {
      vessel: least(others.map((other) => Math.hypot(own.x - other.x, own.y - other.y) - 2 * report.hull.radius)),
      buoy: least(episode.buoys.map((buoy) => Math.hypot(own.x - buoy[0], own.y - buoy[1]) - report.hull.radius - buoy[2])),
    };
  });
}

// The map: north up, east to the right

function view(canvas, box) {
  const scale = canvas.width / (box.east - box.west);
  return { scale, at: (x, y) => [(y - box.west) * scale, (box.north - x) * scale] };
}

function circle(pen, [x, y], radius, style, fill) {
  pen.beginPath();
  pen.arc(x, y, Math.max(radius, 1), 0, 2 * Math.PI);
  pen[fill ? "fillStyle" : "strokeStyle"] = style;
  pen[fill ? "fill" : "stroke"]();
}

function drawFlow(pen, { scale, at }, flow) {
  pen.strokeStyle = colour("--flow");
  for (let i = 0; i < flow.points.length; i += 2) {
    const speed = Math.hypot(flow.velocity[i], flow.velocity[i + 1]);
    const length = Math.min(speed, 1) * 1.6 / (speed || 1);
    const [x, y] = [flow.points[i], flow.points[i + 1]];
    const [dx, dy] = [length * flow.velocity[i], length * flow.velocity[i + 1]];
    pen.beginPath();
    pen.moveTo(...at(x, y));
    pen.lineTo(...at(x + dx, y + dy));
    pen.lineTo(...at(x + 0.7 * dx - 0.2 * dy, y + 0.7 * dy + 0.2 * dx));
    pen.stroke();
  }
  pen.lineWidth = Math.max(scale * 0.1, 1);
}

function drawVessel(pen, { scale, at }, pose, style) {
  const { length, width, radius } = report.hull;
  pen.save();
  pen.translate(...at(pose.x, pose.y));
  pen.rotate(pose.heading);
  pen.fillStyle = style;
  pen.beginPath();
  for (const [ahead, starboard] of [[0.5, 0], [0.2, 0.5], [-0.5, 0.5], [-0.5, -0.5], [0.2, -0.5]]) {
    pen.lineTo(starboard * width * scale, -ahead * length * scale);
  }
  pen.closePath();
  pen.fill();
  pen.restore();
  pen.lineWidth = 1;
  circle(pen, at(pose.x, pose.y), radius * scale, style, false);
}

function drawSeen(pen, { scale, at }, episode, own, row, vessel) {
  pen.setLineDash([6, 6]);
  circle(pen, at(own.x, own.y), report.range * scale, colour("--ink"), false);
  pen.setLineDash([]);
  const [cos, sin] = [Math.cos(own.heading), Math.sin(own.heading)];
  for (let k = 0; k < 5; k++) {
    const [ahead, starboard, radius] = episode.seen.subarray(15 * (row * episode.vessels + vessel) + 3 * k);
    if (radius < 1e-6) continue;
    const place = at(own.x + cos * ahead - sin * starboard, own.y + sin * ahead + cos * starboard);
    pen.lineWidth = 2;
    circle(pen, place, radius * scale, "#e5a50a", false);
    pen.beginPath();
    pen.moveTo(...at(own.x, own.y));
    pen.lineTo(...place);
    pen.lineWidth = 0.5;
    pen.stroke();
  }
}

function drawMap(canvas, episode, row, share, chosen) {
  canvas.width = 1100;
  canvas.height = Math.round(1100 * (episode.box.north - episode.box.south) / (episode.box.east - episode.box.west));
  const pen = canvas.getContext("2d"), chart = view(canvas, episode.box);
  pen.lineWidth = 1;
  if (episode.flow) drawFlow(pen, chart, episode.flow);
  for (const [x, y, radius] of episode.buoys) circle(pen, chart.at(x, y), radius * chart.scale, "#d9a514", true);
  for (let vessel = 0; vessel < episode.vessels; vessel++) {
    const gap = episode.gaps[row][vessel].vessel;
    const near = gap !== null && gap <= report.near.vessel;
    const style = near ? "#e5383b" : report.colours[vessel % report.colours.length];
    pen.strokeStyle = style;
    pen.lineWidth = vessel === chosen ? 2.5 : 1.2;
    pen.beginPath();
    for (let past = 0; past <= Math.min(row, episode.last[vessel]); past++) {
      const { x, y } = poseAt(episode, vessel, past, 0);
      pen.lineTo(...chart.at(x, y));
    }
    const pose = poseAt(episode, vessel, Math.min(row, episode.last[vessel]), row < episode.last[vessel] ? share : 0);
    pen.lineTo(...chart.at(pose.x, pose.y));
    pen.stroke();
    const [x, y] = chart.at(...episode.goals[vessel]);
    pen.strokeRect(x - 5, y - 5, 10, 10);
    pen.globalAlpha = row > episode.last[vessel] ? 0.35 : 1;
    drawVessel(pen, chart, pose, style);
    pen.globalAlpha = 1;
    pen.fillStyle = colour("--ink");
    pen.font = "16px sans-serif";
    pen.fillText(String(vessel + 1), chart.at(pose.x, pose.y)[0] + 12, chart.at(pose.x, pose.y)[1] - 12);
    if (vessel === chosen && row <= episode.last[vessel]) {
      drawSeen(pen, chart, episode, poseAt(episode, vessel, row, 0), row, vessel);  // as of that decision
    }
  }
}

// Gaps over time: of the chosen vessel to the nearest vessel (full line) and buoy (dashed)

function drawGaps(canvas, episode, time, chosen) {
  canvas.width = 1100;
  canvas.height = 170;
  const pen = canvas.getContext("2d"), top = 20;
  const at = (seconds, gap) => [40 + 1050 * seconds / (episode.duration || 1), 150 - 140 * Math.min(Math.max(gap, 0), top) / top];
  const line = (points, style, dash) => {
    pen.setLineDash(dash);
    pen.strokeStyle = style;
    pen.beginPath();
    for (const point of points) pen.lineTo(...at(...point));
    pen.stroke();
  };
  pen.fillStyle = colour("--ink");
  pen.font = "14px sans-serif";
  pen.fillText("gap (m) of vessel " + (chosen + 1), 45, 16);
  for (const gap of [0, 10, 20]) pen.fillText(String(gap), 12, at(0, gap)[1] + 5);
  line([[0, report.near.vessel], [episode.duration, report.near.vessel]], "#e5383b", [2, 4]);
  for (const [kind, dash] of [["vessel", []], ["buoy", [8, 5]]]) {
    const points = [];
    episode.gaps.forEach((gaps, row) => {
      if (gaps[chosen][kind] !== null) points.push([episode.times[row], gaps[chosen][kind]]);
    });
    line(points, report.colours[chosen % report.colours.length], dash);
  }
  line([[time, 0], [time, top]], colour("--ink"), []);
}

// Playback

const player = { episode: null, time: 0, playing: false, before: 0 };

function show() {
  const { episode, time } = player, chosen = Number(element("vessel").value);
  let row = 0;
  const rounding = 1e-3;  // of packed times, in s
  while (row + 1 < episode.times.length && episode.times[row + 1] <= time + rounding) row++;
  const span = row + 1 < episode.times.length ? episode.times[row + 1] - episode.times[row] : 1;
  drawMap(element("map"), episode, row, Math.min(Math.max((time - episode.times[row]) / span, 0), 1), chosen);
  drawGaps(element("gaps"), episode, time, chosen);
  element("scrub").value = time;
  element("time").textContent = time.toFixed(1) + " s of " + episode.duration.toFixed(1) + " s";
  element("play").textContent = player.playing ? "Pause" : "Play";
}

function choose() {
  player.episode = unpackEpisode(report.episodes[Number(element("episode").value)]);
  player.time = 0;
  const { ends, duration } = player.episode;
  element("scrub").max = duration;
  element("vessel").replaceChildren(...ends.map((end, i) => new Option(`vessel ${i + 1}: ${end}`, i)));
  show();
}

function tick(now) {
  if (!player.playing) return;
  player.time += Number(element("speed").value) * Math.max(now - player.before, 0) / 1000;
  player.before = now;
  if (player.time >= player.episode.duration) {
    player.time = player.episode.duration;
    player.playing = false;
  }
  show();
  requestAnimationFrame(tick);
}

function togglePlay() {
  player.playing = !player.playing;
  if (player.playing && player.time >= player.episode.duration) player.time = 0;
  player.before = performance.now();
  show();
  requestAnimationFrame(tick);
}

function startPlayback() {
  element("episode").replaceChildren(...report.episodes.map(({ end, policy, row, world, gap }, i) => {
    const least = gap === null ? "" : `, least gap ${gap} m`;
    return new Option(`${end}: ${report.policies[policy]}, ${row}, episode ${world}${least}`, i);
  }));
  element("episode").addEventListener("change", choose);
  element("vessel").addEventListener("change", show);
  element("play").addEventListener("click", togglePlay);
  element("scrub").addEventListener("input", () => {
    player.time = Number(element("scrub").value);
    player.playing = false;
    show();
  });
  choose();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { drawCharts(); show(); });
startPlayback();
drawCharts();
