/** Whether an assumption holds; `unknown` if the answers show nothing of it. */
export type AssessmentVerdict = 'holds' | 'contradicted' | 'unknown'

/** The judgement of one assumption by a provider's answers. */
export interface Assessment {
  readonly verdict: AssessmentVerdict
  /** Reason in words. */
  readonly evidence: string
  /** Addition to `pitlake.yaml`; null if nothing helps, or nothing is wrong. */
  readonly yaml: Yaml | null
}

/** A part of a config file. */
export interface Yaml {
  readonly [key: string]: string | number | boolean | Yaml
}

/** A judge for each assumption, by its words in docs/how-to/another-provider.md. */
export type Judges<Seen> = Readonly<Record<string, (seen: Seen) => Assessment>>

/** Builds the assessment that the assumption holds, as far as these answers show. */
export const holds = (evidence: string): Assessment => ({ verdict: 'holds', evidence, yaml: null })

/** Builds the assessment that the assumption does not hold; without `yaml` no setting helps. */
export function speaksAgainst(evidence: string, yaml: Yaml | null = null): Assessment {
  return { verdict: 'contradicted', evidence: yaml === null ? `${evidence}; no setting can adapt it` : evidence, yaml }
}

/** Builds the assessment that the answers show nothing of the assumption, with the reason. */
export const unknown = (evidence: string): Assessment => ({ verdict: 'unknown', evidence, yaml: null })

/** Merges parts of a config file. */
export function mergeYaml(parts: readonly Yaml[]): Yaml {
  return parts.reduce<Yaml>((all, part) => {
    const merged = Object.entries(part).map(([key, value]): [string, Yaml[string]] => {
      const member = all[key]
      return [key, typeof member === 'object' && typeof value === 'object' ? mergeYaml([member, value]) : value]
    })
    return { ...all, ...Object.fromEntries(merged) }
  }, {})
}
