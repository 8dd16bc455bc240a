// Drives the playback of a report as a reader would, and writes what it saw into the page's title.
const steps = [];
const note = () => steps.push([player.time, player.playing, element("play").textContent]);
const shapes = report.episodes.map((_, i) => {
  element("episode").value = i;
  element("episode").dispatchEvent(new Event("change"));
  return element("map").height / element("map").width;
});
element("episode").value = report.episodes.length - 1;
element("episode").dispatchEvent(new Event("change"));
note();

// How far from anything true the observed objects are drawn, in m, at every decision.
const drawCircle = circle, centres = { seen: [], true: [] };
circle = (pen, place, radius, style, fill) => {
  centres[style === "#e5a50a" ? "seen" : "true"].push(place);
  drawCircle(pen, place, radius, style, fill);
};
let astray = 0, observed = 0;
for (const time of player.episode.times) {
  centres.seen = [], centres.true = [];
  element("scrub").value = time;
  element("scrub").dispatchEvent(new Event("input"));
  const { scale } = view(element("map"), player.episode.box);
  for (const [x, y] of centres.seen) {
    observed++;
    astray = Math.max(astray, Math.min(...centres.true.map(([u, v]) => Math.hypot(u - x, v - y) / scale)));
  }
}
circle = drawCircle;
element("scrub").value = 0;
element("scrub").dispatchEvent(new Event("input"));

element("play").dispatchEvent(new Event("click"));
setTimeout(() => {
  note();
  element("play").dispatchEvent(new Event("click"));
  note();
  element("scrub").value = "2";
  element("scrub").dispatchEvent(new Event("input"));
  note();
  const drawn = element("map").getContext("2d").getImageData(0, 0, 1100, 300).data.some((value) => value > 0);
  document.title = JSON.stringify({ steps, drawn, shapes, astray, observed, charts: document.querySelectorAll(".main-svg").length });
}, 500);
