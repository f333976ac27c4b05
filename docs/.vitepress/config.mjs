import { readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { anchorOf } from '../../scripts/anchors.ts'

const docs = fileURLToPath(new URL('..', import.meta.url))

/** Folders of pages in the order of the side bar. */
const folders = { tutorials: 'Tutorials', 'how-to': 'How-to', reference: 'Reference', explanation: 'Explanation', contributing: 'Contributing' }

/** The pages of a folder, each under its first heading. */
function pagesOf(folder) {
  const files = readdirSync(`${docs}${folder}`).filter((file) => file.endsWith('.md'))
  return files.map((file) => {
    const [, title = file] = /^# (.+)$/m.exec(readFileSync(`${docs}${folder}/${file}`, 'utf8')) ?? []
    return { text: title.replaceAll('`', ''), link: `/${folder}/${file.replace(/\.md$/, '')}` }
  })
}

export default {
  title: 'pitlake',
  description: 'A point-in-time lake of crypto metrics and of a registry of tokenized assets',
  outDir: '../.cache/site',
  cacheDir: '../.cache/site-cache',
  rewrites: { 'README.md': 'index.md', 'decisions/README.md': 'decisions/index.md' },
  // Addresses of a sandbox or of `pitlake serve` on the reader's own machine.
  ignoreDeadLinks: 'localhostLinks',
  markdown: { anchor: { slugify: anchorOf } },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    sidebar: Object.entries(folders).map(([folder, text]) => ({ text, items: pagesOf(folder) })),
  },
}
