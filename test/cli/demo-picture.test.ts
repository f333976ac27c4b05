// @module-tag full
import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { JSDOM } from 'jsdom'
import type { Page as Tab } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { drawCast, pictureFile } from '../../scripts/demo-picture.ts'
import { pitlake } from '../helpers/command.ts'
import { scratch } from '../helpers/scratch.ts'
import { need } from '../helpers/needs.ts'
import { browsing } from '../page/serving.ts'

const home = scratch('demo-picture')
let printed: string[] = []
beforeAll(async () => {
  const { code, out, message } = await pitlake(home, ['demo'])
  if (code !== 0) throw new Error(message)
  printed = out
    .trimEnd()
    .split('\n')
    .filter((line) => line !== '')
}, 120_000)

/** The lines of a picture of a kind, those that the terminal broke in one. */
function linesOf(svg: string, kind: string): string[] {
  const { document } = new JSDOM(svg).window
  const lines: string[] = []
  for (const text of document.querySelectorAll<SVGElement>(`text.${kind}`)) {
    const { indent = '0', continues } = text.dataset
    const line = ' '.repeat(Number(indent)) + text.textContent
    if (continues === undefined) lines.push(line)
    else lines.push((lines.pop() ?? '') + line)
  }
  return lines
}

describe('docs/images/demo.svg', () => {
  const svg = readFileSync(pictureFile, 'utf8')

  test('the last frame is what pitlake demo prints today', () => {
    expect(printed.length).toBeGreaterThan(8)
    // Otherwise: node scripts/demo-picture.ts
    expect(linesOf(svg, 'stays')).toEqual(['$ pitlake demo', ...printed])
    expect(linesOf(svg, 'goes')).toContain('making a small lake of synthetic data')
  })

  test('is a small file with text that refers to nothing outside itself', () => {
    expect(Buffer.byteLength(svg)).toBeLessThan(60_000)
    expect(svg).not.toMatch(/<script|href|url\(|@import|<image|<foreignObject/)
    const { document } = new JSDOM(svg).window
    expect(document.querySelector('svg title')?.textContent).toBe('A terminal: pitlake demo')
    // Each line lies within the frame, below the one before.
    const width = Number(document.querySelector('svg')?.getAttribute('width'))
    for (const text of document.querySelectorAll('text'))
      expect(Number(text.getAttribute('x')) + Number(text.getAttribute('textLength'))).toBeLessThan(width)
  })

  describe('in a browser', () => {
    let browser: Awaited<ReturnType<typeof browsing>> | undefined
    beforeEach(async (own) => {
      const executable = need(own, 'chromium')
      browser ??= await browsing(executable)
    }, 120_000)
    afterAll(async () => await browser?.close())

    test.each(['light', 'dark'] as const)(
      '%s, without animation: the last frame alone, well readable',
      async (colorScheme) => {
        await using own = await opened({ colorScheme, reducedMotion: 'reduce' })
        const seen = await seenIn(own.tab)
        expect(seen.map(({ text }) => text)).toEqual(
          [...new JSDOM(svg).window.document.querySelectorAll('text.stays')].map((one) => one.textContent),
        )
        expect(Math.min(...seen.map(({ contrast }) => contrast))).toBeGreaterThan(7)
      },
    )

    test('with animation each line comes when it was printed', async () => {
      await using own = await opened({ reducedMotion: 'no-preference' })
      const at = async (ms: number): Promise<string[]> => {
        await own.tab.evaluate((time) => {
          for (const one of document.getAnimations()) {
            one.pause()
            one.currentTime = time
          }
        }, ms)
        return (await seenIn(own.tab)).map(({ text }) => text)
      }
      expect(await at(0)).toEqual(['$ pitlake demo'])
      const [, from] = /show [\d.]+s ([\d.]+)s[^>]*>running and testing the backtest joined/.exec(svg) ?? []
      expect(await at(Number(from) * 1000 + 20)).toEqual([
        '$ pitlake demo',
        'running and testing the backtest joined on t',
      ])
      expect(await at(600_000)).toHaveLength(new JSDOM(svg).window.document.querySelectorAll('text.stays').length)
    })

    /** The picture alone in a tab of readers with these wishes. */
    async function opened(wishes: {
      readonly colorScheme?: 'light' | 'dark'
      readonly reducedMotion: 'reduce' | 'no-preference'
    }) {
      const tab = await browser!.open()
      await tab.emulateMedia(wishes)
      await tab.goto(pathToFileURL(pictureFile).href)
      return { tab, [Symbol.asyncDispose]: async () => await tab.close() }
    }
  })
})

test('a cast whose lines come in parts, too long, or with signs of XML is drawn whole', () => {
  const long = `${'x'.repeat(104)}<&>`
  const events = [
    [0, 'o', '$ a\r\n'],
    [1, 'o', '\r\u001b[Kbusy'],
    [2, 'o', '\r\u001b[Kbusier'],
    [3, 'o', '\r\u001b[K'],
    [3.5, 'o', '  one '],
    [40, 'o', `half\r\n${long}\r\n\r\nlast\r\n`],
  ]
  const svg = drawCast(
    [{ version: 2, idle_time_limit: 5 }, ...events].map((one) => `${JSON.stringify(one)}\n`).join(''),
  )
  expect(linesOf(svg, 'stays')).toEqual(['$ a', '  one half', long, 'last'])
  expect(linesOf(svg, 'goes')).toEqual(['busy', 'busier'])
  const rows = [...svg.matchAll(/ y="(\d+)"[^>]*>/g)].map(([, y]) => Number(y))
  expect(rows).toEqual([30, 50, 50, 50, 70, 90, 130])
  expect(svg).toContain('style="animation:show 1s 2s"')
  // A pause of 36.5 seconds takes five.
  expect(svg).toMatch(/hide 8\.5s"[^>]*>one half/)
})

/** The lines that can be seen, with the contrast of their letters to the ground. */
const visible = `(() => {
  const light = (color) => (color.match(/[0-9.]+/g) ?? []).slice(0, 3).map((c) => c / 255)
    .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0)
  const ground = light(getComputedStyle(document.querySelector('rect')).fill)
  return [...document.querySelectorAll('text')].filter((one) => getComputedStyle(one).opacity === '1').map((one) => {
    const [a, b] = [light(getComputedStyle(one).fill), ground].sort((x, y) => y - x)
    return { text: one.textContent, contrast: (a + 0.05) / (b + 0.05) }
  })
})()`

const seenIn = async (tab: Tab): Promise<readonly { readonly text: string; readonly contrast: number }[]> =>
  await tab.evaluate(visible)
