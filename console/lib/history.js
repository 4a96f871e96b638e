// How the figures of each sale went while the page was open: the service keeps no past.

const most = 600;  // ten minutes, a sample each second
const gap = 4;     // seconds without a sample that a chart shows as a gap

const sales = new Map();

function push(samples, time, admitted, left) {
  samples.times.push(time);
  samples.admitted.push(admitted);
  samples.left.push(left);
  if (samples.times.length > most)
    for (const list of [samples.times, samples.admitted, samples.left]) list.shift();
}

export function remember(snapshot) {
  const time = Date.parse(snapshot.now) / 1000;
  const names = new Set();
  for (const sale of snapshot.sales) {
    names.add(sale.name);
    if (!sales.has(sale.name)) sales.set(sale.name, {times: [], admitted: [], left: []});
    const samples = sales.get(sale.name);
    let last = samples.times.at(-1);
    if (last - time > gap) {  // a clock that was set back
      for (const list of Object.values(samples)) list.length = 0;
      last = undefined;
    }
    if (time <= last) continue;
    if (time - last > gap) push(samples, last + 1, null, null);
    push(samples, time, sale.admitted_per_s ?? null, sale.left ?? null);
  }
  for (const name of sales.keys()) if (!names.has(name)) sales.delete(name);
}

export const historyOf = name => sales.get(name) ?? {times: [], admitted: [], left: []};
