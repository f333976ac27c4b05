/**
 * Finds the known word nearest to a misspelt one, undefined if none is near enough; among durations the equal one:
 * `24h` for `1d`. Of words that are equally near, the one with more of the typed letters is meant, because people leave
 * letters out, double or swap them more often than they type wrong ones: `fish` for `fsh`, not `zsh`. Then the one
 * that begins like the typed word.
 */
export function suggestion(word: string, candidates: readonly string[]): string | undefined {
  const long = lengthOf(word)
  const same = long === undefined ? undefined : candidates.find((candidate) => lengthOf(candidate) === long)
  if (same !== undefined) return same
  const typed = word.toLowerCase()
  const scored = candidates.map((candidate) => {
    const lower = candidate.toLowerCase()
    const distance = editDistance(typed, lower)
    return { candidate, distance, shared: sharedLetters(typed, lower), beginning: sharedBeginning(typed, lower) }
  })
  const best = scored.toSorted((a, b) => a.distance - b.distance || b.shared - a.shared || b.beginning - a.beginning)[0]
  if (best && best.distance <= Math.max(1, Math.floor(word.length / 3))) return best.candidate
  // For any other duration: the longest candidate that is shorter, because the duration can be composed of it.
  const shorter = candidates.filter(
    (candidate) => /^\d/.test(candidate) && (lengthOf(candidate) ?? Infinity) < (long ?? 0),
  )
  return shorter.toSorted((a, b) => (lengthOf(b) ?? 0) - (lengthOf(a) ?? 0))[0]
}

/**
 * Finds up to three paths for a mistyped one: those with every word typed, exactly or nearly, nearest first; otherwise
 * the one whose whole name is near.
 */
export function nearPaths(typed: string, paths: readonly string[]): readonly string[] {
  const words = wordsOf(typed)
  if (words.length === 0) return []
  const scored = paths.flatMap((path) => {
    const parts = wordsOf(path)
    const exact = words.filter((word) => parts.some((part) => part.startsWith(word))).length
    const near = words.filter((word) => parts.some((part) => part.startsWith(word) || isNear(word, part))).length
    return near === words.length ? [{ path, misses: near - exact, length: path.length }] : []
  })
  const best = scored.toSorted((a, b) => a.misses - b.misses || a.length - b.length || (a.path < b.path ? -1 : 1))
  const wholePath = best.length > 0 ? undefined : suggestion(typed, paths)
  return wholePath === undefined ? best.slice(0, 3).map(({ path }) => path) : [wholePath]
}

/** Returns the advice that names the nearest known word; undefined if none is near. */
export function hint(word: string, knownWords: readonly string[]): string | undefined {
  const near = suggestion(word, knownWords)
  return near === undefined ? undefined : `did you mean \`${near}\`?`
}

/** Returns the advice that names the words found, or `otherwise` if there are none. */
export function didYouMean(found: readonly string[], otherwise: string): string {
  if (found.length === 0) return otherwise
  const quoted = found.map((word) => `\`${word}\``)
  return `did you mean ${quoted.length === 1 ? quoted[0] : `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`}?`
}

/**
 * Units of time as people and pandas spell them, with their seconds and pitlake's spelling; a month has its maximum of
 * 31 days, a quarter three of these.
 */
export const units: readonly (readonly [spelt: RegExp, seconds: number, here: string])[] = [
  [/^(?:MS?|ME|mo|months?|monthly)$/, 31 * 86_400, 'month'],
  [/^(?:Q|QS|QE|quarters?|quarterly)$/, 93 * 86_400, 'month'],
  [/^(?:s|secs?|seconds?)$/i, 1, 's'],
  [/^(?:m|mins?|minutes?)$/i, 60, 'm'],
  [/^(?:h|hrs?|hours?|hourly)$/i, 3600, 'h'],
  [/^(?:d|days?|daily)$/i, 86_400, 'd'],
  [/^(?:w|weeks?|weekly)$/i, 7 * 86_400, 'w'],
]

/**
 * Returns the advice to spell a duration as pitlake does: `15m` for `15min`, `1month` for `MS` if `months` are allowed;
 * undefined if there is none.
 */
export function spanHint(text: string, months = false): string | undefined {
  const [, count = '', word = ''] = /^(\d{0,15})\s*([a-z]+)$/i.exec(text.trim()) ?? []
  const [, seconds = 0, unit] = units.find(([spelt]) => spelt.test(word)) ?? []
  if (unit === undefined || (unit === 'month' && !months)) return undefined
  // Quarters are spelt as three months.
  const times = unit === 'month' ? seconds / (31 * 86_400) : 1
  return `did you mean \`${Number(count || 1) * times}${unit}\`?`
}

/**
 * Returns the seconds of a duration, however its unit is spelt, with months at their longest; undefined for other
 * texts.
 */
function lengthOf(word: string): number | undefined {
  const [, count = '', unit = ''] = /^(\d*)\s*([a-z]+)$/i.exec(word) ?? []
  const namedUnit = units.find(([spelt]) => spelt.test(unit))
  return namedUnit && Number(count || 1) * namedUnit[1]
}

/** Splits a name into its words; `pit`, which ends every path and distinguishes none, is left out. */
function wordsOf(name: string): string[] {
  return name
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word.length > 1 && word !== 'pit')
}

/** Whether a word of four letters or more differs by at most one slip. */
function isNear(word: string, part: string): boolean {
  return word.length >= 4 && Math.abs(word.length - part.length) <= 1 && editDistance(word, part) <= 1
}

/** Counts the letters of a word that another one also has, each as often as both have it. */
function sharedLetters(a: string, b: string): number {
  const left = [...b]
  return [...a].filter((letter) => {
    const at = left.indexOf(letter)
    if (at >= 0) left.splice(at, 1)
    return at >= 0
  }).length
}

/** Counts the letters with which two words begin alike. */
function sharedBeginning(a: string, b: string): number {
  let length = 0
  while (length < a.length && a[length] === b[length]) length++
  return length
}

/** Edits between two short words; two swapped neighbours count once. */
function editDistance(a: string, b: string): number {
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swap = swapped ? (before[j - 2] ?? Infinity) + 1 : Infinity
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, change, swap))
    }
    before = row
    row = next
  }
  return row[b.length] ?? 0
}
