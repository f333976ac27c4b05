import type { Files } from './order.ts'

/** The page that lists the cases of time by number. */
export const casesPage = 'docs/explanation/concepts.md'

/** Cases that the page lists and no title of a test names, the other way round, and numbers that are left out. */
export function caseBreaches(files: Files): string[] {
  const listed = [...(files.get(casesPage) ?? '').matchAll(/^(\d+)\. /gm)].map(([, number]) => Number(number))
  const named = new Set(
    [...files].flatMap(([path, text]) => (/\.test\.ts$|^test\/views\/cases\/.*\.sql$/.test(path) ? casesOf(text) : [])),
  )
  return [
    ...listed.filter((number, n) => number !== n + 1).map((number) => `${casesPage} lists ${number} out of order`),
    ...listed.filter((number) => !named.has(number)).map((number) => `no test is titled TIME ${number}`),
    ...[...named].filter((number) => !listed.includes(number)).map((number) => `${casesPage} does not list ${number}`),
  ]
}

/** The page that says where to go for a change. */
const signpost = 'CONTRIBUTING.md'

/** Files that the page's table names and that are not there; a bare name is one beside the file before it. */
export function lostPlaces(files: Files): string[] {
  const rows = (files.get(signpost) ?? '').match(/^\| .* \|$/gm) ?? []
  const isThere = (place: string): boolean => {
    const text = place
      .split(/\*|<name>|NN_name/)
      .map((part) => part.replaceAll('.', String.raw`\.`))
      .join('[^/]+')
    const named = new RegExp(`${place.includes('/') ? '^' : '/'}${text}${place.endsWith('/') ? '' : '$'}`)
    return [...files.keys()].some((path) => named.test(path))
  }
  const places = /`([\w.*/<>-]+\.(?:ts|sql|py|yaml|md)|(?:[\w-]+\/)+)`/g
  return rows.flatMap((row) => [...row.matchAll(places)].map(([, place = '']) => place)).filter((one) => !isThere(one))
}

/** The page that lists the laws. */
export const lawsPage = 'docs/explanation/concepts.md'

/** Laws that the page lists and no test is named after, in its file's name or in a title, and the other way round. */
export function lawBreaches(files: Files): string[] {
  const listed = new Set([...(files.get(lawsPage) ?? '').matchAll(/^- \*\*(L\d+) /gm)].map(([, law = '']) => law))
  const named = new Set(
    [...files].flatMap(([path, text]) => {
      if (!path.endsWith('.test.ts')) return []
      const titles = [...text.matchAll(/['"`](L\d+): /g)].map(([, law = '']) => law)
      return [...titles, ...(/^test\/laws\/(L\d.*)-/.exec(path)?.[1]?.match(/L\d+/g) ?? [])]
    }),
  )
  return [
    ...[...listed].filter((law) => !named.has(law)).map((law) => `no test is named after ${law}`),
    ...[...named].filter((law) => !listed.has(law)).map((law) => `${lawsPage} does not list ${law}`),
  ]
}

/** The numbers in titles, which begin with them: `TIME 1, TIME 2: …`, so that `vitest -t 'TIME 2\\b'` finds each. */
function casesOf(text: string): number[] {
  return [...text.matchAll(/(?:['"`]|^-- )((?:TIME \d+, )*TIME \d+):/gm)].flatMap(([, title = '']) =>
    title.split(', ').map((name) => Number(name.slice('TIME '.length))),
  )
}
