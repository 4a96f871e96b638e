// A figure over the last minutes. uPlot draws it; it is fetched when the first chart is shown.
import {html, useEffect, useRef, useState} from '../vendor/preact.js';
import {clock, count} from '../lib/format.js';

const least = 60;  // seconds that a chart spans at least

let library = null;
function uplot() {
  return library ??= new Promise((resolve, reject) => {
    const script = Object.assign(document.createElement('script'), {src: '/console/vendor/uPlot.iife.min.js'});
    script.onload = () => resolve(globalThis.uPlot);
    script.onerror = () => { library = null; reject(new Error('uPlot was not loaded')); };
    document.head.append(script);
  });
}

const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const font = '11px "Liberation Sans", Arial, sans-serif';
const steps = [1, 10, 100, 1000, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9].flatMap(n => [n, 2 * n, 5 * n]);

function optionsOf({tint, format, readout}) {
  const axis = {stroke: colour('--muted'), font, ticks: {show: false},
                grid: {stroke: colour('--line'), width: 1}};
  return {
    width: 300, height: 170, padding: [10, 8, 0, 0],
    legend: {show: false},
    cursor: {y: false, drag: {x: false}, points: {size: 7}},
    select: {show: false},
    scales: {
      x: {range: (_, from, to) => [Math.min(from, to - least), to]},
      y: {range: (_, from, to) => [0, Math.max(to * 1.1, 1)]},
    },
    axes: [
      {...axis, grid: {show: false}, space: 90, size: 28, values: (_, at) => at.map(s => clock(s * 1000))},
      {...axis, size: 52, space: 32, incrs: steps, values: (_, at) => at.map(count)},
    ],
    series: [{}, {stroke: colour(tint), fill: `${colour(tint)}22`, width: 2, points: {show: false}}],
    hooks: {setCursor: [plot => readout(plot.cursor.idx)]},
  };
}

/** `title` names it, `values` go with `times`; `tint` is a custom property of the style. */
export function Chart({title, times, values, format, tint}) {
  const place = useRef(null);
  const plot = useRef(null);
  const [at, point] = useState(null);
  const [scheme, turn] = useState(0);  // drawn anew when light turns to dark
  useEffect(() => {
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const changed = () => turn(n => n + 1);
    dark.addEventListener('change', changed);
    return () => dark.removeEventListener('change', changed);
  }, []);
  useEffect(() => {
    let gone = false;
    const sizes = new ResizeObserver(([{contentRect}]) => plot.current?.setSize({width: contentRect.width, height: 170}));
    uplot().then(UPlot => {
      if (gone) return;
      plot.current = new UPlot(optionsOf({tint, format, readout: point}), [times, values], place.current);
      sizes.observe(place.current);
    }, () => {});  // without it the figure in words is there all the same
    return () => {
      gone = true;
      sizes.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [scheme, tint]);
  useEffect(() => { plot.current?.setData([times, values]); });

  const known = values.filter(value => value !== null);
  const now = known.at(-1);
  const summary = known.length ? `now ${format(now)}, most ${format(Math.max(...known))}` : 'no figures yet';
  const pointed = (values[at] ?? null) !== null;
  return html`
    <figure class="chart">
      <figcaption><h2>${title}</h2>
        <span aria-hidden="true">${pointed ? `${clock(times[at] * 1000)}: ${format(values[at])}` : summary}</span></figcaption>
      <div ref=${place} role="img" aria-label=${`${title}: ${summary}`}></div>
    </figure>`;
}

/** The same as a line without axes. */
export function Spark({values}) {
  const last = values.slice(-60).map(value => value ?? 0);
  if (last.length < 2) return html`<svg class="spark" aria-hidden="true"></svg>`;
  const most = Math.max(1, ...last);
  const points = last.map((value, i) => `${(100 * i) / (last.length - 1)},${23 - (21 * value) / most}`).join(' ');
  return html`
    <svg class="spark" viewBox="0 0 100 24" preserveAspectRatio="none" aria-hidden="true">
      <polyline points=${points} fill="none" vector-effect="non-scaling-stroke" /></svg>`;
}
