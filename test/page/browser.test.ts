import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type BrowserContext, chromium, type Page as Tab } from 'playwright-core'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { statusPage } from '../../src/interfaces/report/page/page.ts'
import { need } from '../helpers/needs.ts'
import { page } from './facts.ts'
import { chromiumFlags } from './serving.ts'
import { makeFolder } from '../helpers/folders.ts'

describe('the page in a real browser', () => {
  let folder = ''
  let context: BrowserContext | undefined
  let tab: Tab
  const asked: string[] = []
  const said: string[] = []

  // The first that finds one opens it.
  beforeEach(async (own) => {
    const executablePath = need(own, 'chromium')
    if (context) return
    folder = makeFolder('page')
    writeFileSync(join(folder, 'status.html'), statusPage(page()))
    context = await chromium.launchPersistentContext(join(folder, 'profile'), {
      executablePath,
      args: chromiumFlags,
      headless: true,
    })
    tab = await context.newPage()
    tab.on('request', (request) => asked.push(request.url()))
    tab.on('console', (message) => said.push(message.text()))
    tab.on('pageerror', (error) => said.push(String(error)))
    await tab.goto(pathToFileURL(join(folder, 'status.html')).href)
  }, 300_000)

  afterAll(async () => {
    if (!context) return
    await context.close()
    rmSync(folder, { recursive: true, force: true })
  })

  test('asks for nothing but itself and has nothing to complain of', () => {
    expect(asked.map((url) => url.split('/').at(-1)?.slice(0, 11))).toEqual(['status.html'])
    expect(said).toEqual([])
  })

  test('runs no text as a script', async () => expect(await tab.evaluate('window.hurt')).toBeUndefined())

  test.each([
    [1240, 900],
    [820, 1100],
    [390, 844],
    [320, 600],
  ])('%i pixels wide: nothing runs over the edge, no text lies on another', async (width, height) => {
    await tab.setViewportSize({ width, height })
    expect(await tab.evaluate('document.documentElement.scrollWidth')).toBe(width)
    const overlaps = await tab.evaluate(`(() => {
      const rows = [...document.querySelectorAll('[data-r]')].map((row) => row.getBoundingClientRect())
      const cells = [...document.querySelectorAll('[data-r] .heat')].map((cell) => cell.getBoundingClientRect())
      return rows.filter((row, i) => i > 0 && row.top < rows[i - 1].bottom - 0.5).length + cells.filter((c) => c.width < 120 || c.height < 8).length
    })()`)
    expect(overlaps).toBe(0)
    const cut = await tab.evaluate(`[...document.querySelectorAll('.row:not(.head) .fresh')]
      .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent)`)
    expect(cut).toEqual([])
  })

  test.each(['light', 'dark'] as const)('%s: every word stands out from its ground', async (colorScheme) => {
    await tab.setViewportSize({ width: 1240, height: 900 })
    await tab.emulateMedia({ colorScheme })
    expect(await tab.evaluate(contrasts)).toEqual([])
  })

  test('the keyboard moves over rows and months, and the readout shows the position', async () => {
    const readout = async () => (await tab.locator('#readout').textContent()) ?? ''
    await tab.locator('[data-r="0"]').focus()
    await tab.keyboard.press('End')
    expect(await readout()).toMatch(/^2024-06\s+supply\/current_pit\s+29 of 30 due points, 1 missing$/)
    await tab.keyboard.press('ArrowDown')
    await tab.keyboard.press('Home')
    expect(await readout()).toMatch(/^2022-01\s+supply\/other_pit\s+nothing due$/)
    for (let i = 0; i < 12; i++) await tab.keyboard.press('ArrowRight')
    expect(await readout()).toMatch(/^2023-01\s+supply\/other_pit\s+0 of 30 due points, 30 in failed windows$/)
    expect(await tab.evaluate('document.querySelectorAll(\'[data-r][tabindex="0"]\').length')).toBe(1)
  })

  test('the pointer does the same', async () => {
    const cell = tab.locator('[data-r="0"] .heat')
    const box = await cell.boundingBox()
    await tab.mouse.move((box?.x ?? 0) + (box?.width ?? 0) * (6.5 / 30), (box?.y ?? 0) + 4)
    expect(await tab.locator('#readout').textContent()).toMatch(/^2022-07\s+supply\/current_pit\s+30 of 30 due points$/)
  })
})

/** Texts whose contrast with the ground behind them is below 4.5 to 1, or 3 to 1 where they are large. */
const contrasts = `(() => {
  const light = (rgb) => rgb.map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0)
  const parse = (color) => (color.match(/[0-9.]+/g) ?? []).map(Number)
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const [r, g, b, a = 1] = parse(getComputedStyle(e).backgroundColor)
      if (a > 0) return [r, g, b]
    }
    return [255, 255, 255]
  }
  const poor = []
  for (const element of document.querySelectorAll('main *')) {
    if (![...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== '')) continue
    if (element.closest('svg') || element.tagName === 'SCRIPT') continue
    const style = getComputedStyle(element)
    const [a, b] = [light(parse(style.color).slice(0, 3)), light(ground(element))].sort((x, y) => y - x)
    const ratio = (a + 0.05) / (b + 0.05)
    if (ratio < (parseFloat(style.fontSize) >= 24 ? 3 : 4.5)) poor.push(element.className + ' ' + element.tagName + ' ' + ratio.toFixed(2))
  }
  return [...new Set(poor)]
})()`

test('the page is whole for every reader', () => {
  expect(statusPage(page())).toMatch(/^<!doctype html>[\s\S]*<\/html>\n$/)
})
