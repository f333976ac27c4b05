import { expect, test } from 'vitest'
import { annotationText, junitText, reportText } from '../../src/interfaces/report/lookahead-report.ts'
import { type JudgedItem, plainVerdict, researchReport } from '../../src/trust/research/judged-item.ts'

const clean: JudgedItem = {
  file: './a, b/q.sql',
  line: 3,
  kind: 'query',
  name: null,
  verdict: 'clean',
  reason: null,
  leak: null,
  proved: true,
  depends_on: [],
  cached: true,
}
const leak: JudgedItem = {
  ...clean,
  verdict: 'leak',
  reason: '100 % <late>\nnext',
  leak: 'on 2024 it "gives" 1 & 2',
  cached: false,
}
const open: JudgedItem = { ...clean, ...plainVerdict('not checked', 'no Python'), name: 'f', cached: false }
const skipped: JudgedItem = { ...clean, ...plainVerdict('skipped', 'no query: \u0007'), cached: false }
const report = researchReport([skipped, clean, open, leak])

test('the gravest verdict counts, and skipped items do not', () => {
  expect(report).toMatchObject({
    verdict: 'leak',
    cached: 1,
    counts: { leak: 1, 'not checked': 1, clean: 1, skipped: 1 },
  })
  expect(researchReport([clean, open]).verdict).toBe('undecided')
  expect(researchReport([clean, skipped]).verdict).toBe('clean')
})

test('a leak is an error annotation and an item without a verdict a warning, with what would end them escaped', () => {
  expect(annotationText(report)).toBe(
    `::warning file=a%2C b/q.sql,line=3,title=Look-ahead not checked::f: no Python
::error file=a%2C b/q.sql,line=3,title=Look-ahead::on 2024 it "gives" 1 & 2%0A100 %25 <late>%0Anext
`,
  )
})

test('JUnit counts leaks as failures and escapes what XML cannot hold', () => {
  const text = junitText(report)
  expect(text).toContain('tests="4" failures="1" errors="1" skipped="1"')
  expect(text).toContain('<failure type="leak" message="on 2024 it &quot;gives&quot; 1 &amp; 2">')
  expect(text).toContain('<error type="not checked" message="no Python">')
  expect(text).toContain('<skipped message="no query: \uFFFD"/>')
  expect(text).not.toContain('<late>')
})

test('the table begins with the leaks and ends with the counts', () => {
  const lines = reportText(report).trimEnd().split('\n')
  expect(lines.slice(2, 6).map((line) => line.split('  ')[0])).toEqual(['leak', 'not checked', 'clean', 'skipped'])
  expect(lines.at(-1)).toBe('4 items: 1 leak, 1 not checked, 1 clean, 1 skipped; 1 verdict from the cache')
  expect(reportText(researchReport([]))).toBe('0 items\n')
})
