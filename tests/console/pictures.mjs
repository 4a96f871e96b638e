// Pictures of the page compared with those that were approved, as a person would who screws up his eyes: 40 by 30 cells of
// brightness. Fonts and machines may differ by a little; a column that is gone, a wrong scheme or an empty chart may not.
//   APPROVE=1 node tests/console/console_test.mjs       approves what is shown now
import {mkdirSync, readFileSync, writeFileSync} from 'node:fs';
import {fileURLToPath} from 'node:url';

const approved = fileURLToPath(new URL('approved_pictures.json', import.meta.url));
const taken = fileURLToPath(new URL('../../build/console_pictures/', import.meta.url));

/** The brightness of each cell, 0 to 99, of a picture in PNG. */
function cellsOf(page, png) {
  return page.evaluate(async base64 => {
    const bytes = Uint8Array.from(atob(base64), char => char.charCodeAt(0));
    const picture = await createImageBitmap(new Blob([bytes], {type: 'image/png'}));
    const canvas = new OffscreenCanvas(40, 30);
    const pen = canvas.getContext('2d');
    pen.imageSmoothingQuality = 'high';
    pen.drawImage(picture, 0, 0, 40, 30);
    const {data} = pen.getImageData(0, 0, 40, 30);
    const cells = [];
    for (let i = 0; i < data.length; i += 4)
      cells.push(Math.round((0.2126 * data[i] + 0.7152 * data[i + 1] + 0.0722 * data[i + 2]) * 99 / 255));
    return cells;
  }, Buffer.from(png).toString('base64'));
}

/** How far the page is from its approved picture: the mean of all cells, and the cell that differs most (0 to 99). */
export async function difference(page, name) {
  const png = await page.screenshot();
  mkdirSync(taken, {recursive: true});
  writeFileSync(`${taken}${name}.png`, png);
  const cells = await cellsOf(page, png);
  const all = JSON.parse(readFileSync(approved, 'utf8'));
  if (process.env.APPROVE) {
    all[name] = cells.join(' ');
    writeFileSync(approved, `${JSON.stringify(all, null, 1)}\n`);
  }
  const wanted = (all[name] ?? '').split(' ').map(Number);
  const gaps = cells.map((cell, i) => Math.abs(cell - (wanted[i] ?? 99)));
  return {mean: gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length, most: Math.max(...gaps)};
}
