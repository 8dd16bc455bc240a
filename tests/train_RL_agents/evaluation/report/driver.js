// Drives the playback of a report as a reader would, and writes what it saw into the page's title.
const steps = [];
const note = () => steps.push([player.time, player.playing, element("play").textContent]);
element("episode").value = report.episodes.length - 1;
element("episode").dispatchEvent(new Event("change"));
note();
element("play").dispatchEvent(new Event("click"));
setTimeout(() => {
  note();
  element("play").dispatchEvent(new Event("click"));
  note();
  element("scrub").value = "2";
  element("scrub").dispatchEvent(new Event("input"));
  note();
  const drawn = element("map").getContext("2d").getImageData(0, 0, 1100, 300).data.some((value) => value > 0);
  document.title = JSON.stringify({ steps, drawn, charts: document.querySelectorAll(".main-svg").length });
}, 500);
