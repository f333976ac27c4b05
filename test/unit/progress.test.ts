import { expect, test } from 'vitest'
import { fitLive, passingLine } from '../../src/base/progress.ts'

/** Shows one line of progress on a terminal of this width; returns what the terminal receives. */
function shownLine(line: string, columns: number | undefined): string {
  let now = 0
  let shown = ''
  const live = (text: string): void => void (shown = fitLive(text, columns))
  const { show } = passingLine({ now: () => now, stderr: () => undefined, live, isTerminal: true })
  now = 1000
  show(() => line, false)
  return shown
}

test('a line of progress leaves the last column of the terminal free, so that it never wraps', () => {
  const line =
    '23/167 series  0 points  31 requests, 960/min  36 credits  about 12 s left  options/iv_call_delta_25_pit'
  expect(shownLine(line, 80)).toBe(line.slice(0, 79))
  expect(shownLine(line, 200)).toBe(line)
})

test.each([undefined, 0])('a line of progress on a terminal of %s columns is cut at 118', (columns) => {
  expect(shownLine('x'.repeat(300), columns)).toHaveLength(118)
})
