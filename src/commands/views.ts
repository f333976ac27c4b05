import { inLake, places } from '../store/layout.ts'
import { Ledger } from '../ledger/ledger.ts'
import { buildViews, type ViewsBuilt } from '../views/build.ts'
import { bytes, whole } from '../words/figures.ts'
import { answering } from './spec.ts'
import { lakeWorld, requireLake } from './world.ts'

/** `views`: makes `lake.duckdb` and `lake.sql` anew. */
export const viewsCommand = answering({
  name: 'views',
  ends: [4, 6],
  options: {},
  details:
    'fetch, registry and compact do this at their end. Both files hold views and macros only and are replaced\nwhole: open sessions go on with what they opened. docs/views.md describes every object.',
  answer: async (_, { settings, catalogue }, deps) => {
    const root = settings.data
    requireLake(root)
    using ledger = await Ledger.open(root)
    const built = await buildViews(ledger, { catalogue, force: true, deps: lakeWorld(deps, 'views') })
    return { document: built, words: () => inWords(root, built) }
  },
})

function inWords(root: string, { version, objects, files, bytes: size }: ViewsBuilt): string {
  return `${objects} objects over ${whole(files)} files of version ${version} (${bytes(size)}):
  ${inLake(root, places.database)}
  ${inLake(root, places.script)}
`
}
