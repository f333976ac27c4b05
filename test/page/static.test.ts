import { JSDOM } from 'jsdom'
import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { lagAt, toneOf } from '../../src/interfaces/report/page/endpoints.ts'
import { html, inlineJson } from '../../src/interfaces/report/page/html.ts'
import { statusPage } from '../../src/interfaces/report/page/page.ts'
import { emptyPage, hostile, page } from './facts.ts'

const text = statusPage(page())
const { document } = new JSDOM(text).window

describe('the page as text', () => {
  test('is one file that refers to nothing outside itself', () => {
    expect(text.startsWith('<!doctype html>')).toBe(true)
    const refers = [...document.querySelectorAll('[src], [href], [srcset], [action], [data], [poster], [background]')]
    const [icon, ...links] = refers
    expect(icon?.outerHTML).toBe('<link rel="icon" href="data:,">')
    // A link opens nothing by itself.
    const notes = ['abcdef0123456789', 'fedcba9876543210', '0123456789abcdef'].map((id) => ['A', `stamps/${id}.json`])
    expect(links.map((link) => [link.tagName, link.getAttribute('href')])).toEqual(notes)
    const style = document.querySelector('style')?.textContent ?? ''
    expect(style).not.toMatch(/url\(|@import|@font-face/)
  })
  test('the page forbids every connection and every script but its own', () => {
    const policy = document.querySelector('meta[http-equiv]')?.getAttribute('content') ?? ''
    expect(policy).toMatch(/^default-src 'none';/)
    const [own, ...others] = [...document.querySelectorAll('script:not([type="application/json"])')]
    expect(others).toEqual([])
    const digest = createHash('sha256')
      .update(own?.textContent ?? '')
      .digest('base64')
    expect(policy).toContain(`script-src 'sha256-${digest}'`)
  })
  test('shows hostile text as text', () => {
    expect(document.querySelectorAll('img, iframe, object')).toHaveLength(0)
    expect(document.querySelectorAll('script')).toHaveLength(2)
    expect(
      [...document.querySelectorAll('*')].flatMap((e) => e.getAttributeNames()).filter((name) => name.startsWith('on')),
    ).toEqual([])
    expect(document.body.textContent).toContain(hostile)
    expect(document.querySelector('[data-r="2"] .name')?.getAttribute('title')).toBe(`market/${hostile}`)
  })
  test('gives every picture a title, every cell of a table a header, every part a heading', () => {
    for (const picture of document.querySelectorAll('svg:not([aria-hidden])')) {
      expect(picture.getAttribute('role')).toBe('img')
      expect(picture.querySelector('title')?.textContent).not.toBe('')
    }
    for (const table of document.querySelectorAll('main section:not([aria-labelledby="notes-title"]) table'))
      expect(table.querySelectorAll('th').length).toBe(table.querySelector('tbody tr')?.children.length)
    for (const section of document.querySelectorAll('main > section[aria-labelledby]'))
      expect(document.getElementById(section.getAttribute('aria-labelledby') ?? '')?.textContent).toBeTruthy()
    const ids = [...document.querySelectorAll('[id]')].map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    expect(document.documentElement.lang).toBe('en')
  })
  test('one row of the map is reached by tab, the other rows by arrow keys', () => {
    const rows = [...document.querySelectorAll<HTMLElement>('[data-r]')]
    expect(rows.map(({ tabIndex }) => tabIndex)).toEqual([0, -1, -1])
  })
  test('names what there is of both values, plan and deed, coming and going', () => {
    const shown = (id: string) =>
      document.querySelector(`[aria-labelledby="${id}-title"]`)?.textContent?.replaceAll(/\s+/g, ' ')
    expect(shown('violations')).toMatch(/1\.25 ?1\.5/)
    expect(shown('stamps')).toMatch(/ UTC9falls apart r\.parquet11.* UTC1,000look-ahead proved old\.parquet3.* UTC $/)
    expect(shown('runs')).toContain('10 of 20')
    expect(shown('registry')).toContain('39 active and 3 retired products')
    expect(shown('registry')).toContain('1 created, 1 retired, 1 removed')
    expect(shown('arrival')).toContain('99.57 % of 703 arrivals')
    expect(document.querySelector('.chip')?.textContent).toBe('synthetic data')
    expect(document.querySelector('h1')?.textContent).toMatch(/Look at this/)
  })
  test('an empty lake is said to be empty', () => {
    const empty = new JSDOM(statusPage(emptyPage())).window.document
    expect(empty.querySelectorAll('.none').length).toBeGreaterThanOrEqual(5)
    expect(empty.body.textContent).not.toMatch(/NaN|undefined|Infinity/)
    expect(empty.querySelector('.chip')).toBeNull()
    expect(text).not.toMatch(/NaN|undefined|Infinity/)
  })
})

describe('the map', () => {
  test.each([
    [30, 30, 0, 'h0'],
    [30, 29, 0, 'h2'],
    [100, 97, 0, 'h1'],
    [100, 99, 1, 'f'],
    [30, 15, 0, 'h3'],
    [30, 1, 0, 'h4'],
    [30, 0, 0, 'h5'],
    [0, 0, 0, undefined],
  ])('%i due, %i held, %i failed: %s', (due, held, failed, tone) => expect(toneOf(due, held, failed)).toBe(tone))

  test('covers every month with something due exactly once', () => {
    for (const [index, row] of page().endpoints.entries()) {
      const months = Array.from({ length: 30 }, () => 0)
      for (const path of document.querySelectorAll(`[data-r="${index}"] .heat path`))
        for (const run of (path.getAttribute('d') ?? '').matchAll(/M(\d+) 0h(\d+)v1h-\2z/g))
          for (let m = Number(run[1]); m < Number(run[1]) + Number(run[2]); m++) months[m] = (months[m] ?? 0) + 1
      expect(months).toEqual(row.due.map((due) => (due > 0 ? 1 : 0)))
    }
  })
  test('a month before 1970 has its name in the readout', () => {
    const early = statusPage({ ...page(), firstMonth: -2 })
    const { window } = new JSDOM(early, { runScripts: 'dangerously' })
    const row = window.document.querySelector<HTMLElement>('[data-r="0"]')!
    row.focus()
    row.dispatchEvent(new window.KeyboardEvent('keydown', { key: 'Home', bubbles: true }))
    expect(window.document.getElementById('readout')?.textContent).toMatch(/^1969-11 /)
  })
  test('the axis of lags is clipped at both ends and grows', () => {
    expect([0, 30, 1e9].map(lagAt)).toEqual([0, 0, 100])
    expect(lagAt(600)).toBeLessThan(lagAt(601))
  })
})

describe('words', () => {
  test('markup comes from templates only', () => {
    expect(html`<p title="${hostile}">${hostile}${null}${[1, 'a', html`<b>${'<'}</b>`]}</p>`.markup).not.toMatch(
      /<script|<img/,
    )
    expect(inlineJson({ a: '</script><!--\u2028' }).markup).not.toMatch(/[<>\u2028]/)
    expect(JSON.parse(inlineJson({ a: '</script>' }).markup)).toEqual({ a: '</script>' })
  })
})
