import type { Files } from './order.ts'

/** Written in pieces or with a class of one letter, so that this file does not say what it forbids. */
const forbidden: Readonly<Record<string, RegExp>> = {
  'machine path': new RegExp(
    String.raw`(?<![\w.~})-])/(?:work|root|home/\w+|Users/\w+|workspace|mnt/\w+)(?:/|\b(?![-\w]))`,
    'g',
  ),
  'registry host': new RegExp(
    ['npmjs', 'yarnpkg', 'npmmirror', 'jsr', 'pypi', 'pythonhosted', 'verdaccio', 'artifactory', 'jfrog']
      .map((name) => String.raw`\b${name}\.(?:org|com|io)\b`)
      .join('|'),
    'gi',
  ),
  'package mirror': /\bregistry\s*=\s*http|_auth(?:Token)?\s*=|--index-[u]rl/gi,
  'loose end': /\b(?:TO[D]O|FIX[M]E|X[X]X)\b/g,
}

/** Every place in the texts that names a machine's folder, a package registry, or a loose end. */
export function forbiddenWords(files: Files): readonly string[] {
  return [...files].flatMap(([path, text]) =>
    Object.entries(forbidden).flatMap(([name, pattern]) =>
      [...text.matchAll(pattern)].map((match) => {
        const line = text.slice(0, match.index).split('\n').length
        return `${path}:${line}: ${name} ${JSON.stringify(match[0])}`
      }),
    ),
  )
}
