/** Whether an assumption holds; `unknown` if the answers show nothing of it. */
export type AssessmentVerdict = 'holds' | 'contradicted' | 'unknown'

/** The judgement of one assumption by a provider's answers. */
export interface Assessment {
  readonly verdict: AssessmentVerdict
  /** Why, in words. */
  readonly evidence: string
  /** What to put into `pitlake.yaml`; null if nothing helps, or nothing is wrong. */
  readonly yaml: Yaml | null
}

/** A part of a config file. */
export interface Yaml {
  readonly [key: string]: string | number | boolean | Yaml
}

/** A judge for each assumption, by the words that stand for it in docs/how-to/another-provider.md. */
export type Judges<Seen> = Readonly<Record<string, (seen: Seen) => Assessment>>

/** The assumption holds, as far as these answers go. */
export const holds = (evidence: string): Assessment => ({ verdict: 'holds', evidence, yaml: null })

/** The assumption does not hold; without `yaml` no setting mends it. */
export function speaksAgainst(evidence: string, yaml: Yaml | null = null): Assessment {
  return { verdict: 'contradicted', evidence: yaml === null ? `${evidence}; cannot be adapted` : evidence, yaml }
}

/** The answers show nothing of the assumption, and why. */
export const unknown = (evidence: string): Assessment => ({ verdict: 'unknown', evidence, yaml: null })

/** Parts of a config file as one. */
export function mergeYaml(parts: readonly Yaml[]): Yaml {
  return parts.reduce<Yaml>((all, part) => {
    const merged = Object.entries(part).map(([key, value]): [string, Yaml[string]] => {
      const member = all[key]
      return [key, typeof member === 'object' && typeof value === 'object' ? mergeYaml([member, value]) : value]
    })
    return { ...all, ...Object.fromEntries(merged) }
  }, {})
}
