/** The known word nearest to a misspelt one, if any is near enough. */
export function suggestion(word: string, known: readonly string[]): string | undefined {
  const scored = known.map((candidate) => ({
    candidate,
    distance: editDistance(word.toLowerCase(), candidate.toLowerCase()),
  }))
  const best = scored.toSorted((a, b) => a.distance - b.distance)[0]
  return best && best.distance <= Math.max(1, Math.floor(word.length / 3)) ? best.candidate : undefined
}

/** Levenshtein distance of two short words. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const swap = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, swap))
    }
    row = next
  }
  return row[b.length] ?? 0
}
