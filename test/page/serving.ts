import { once } from 'node:events'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join } from 'node:path'
import { type BrowserContext, chromium, type Page as Tab } from 'playwright-core'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import { inLake, places } from '../../src/lake/store/layout.ts'
import { makeFolder } from '../helpers/folders.ts'

/** How Chromium is started: no window, nobody asked but whom the page asks. */
export const chromiumFlags = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** A browser of its own; `asked` are the addresses that it asked for, `said` what its pages complained of. */
export async function browsing(executablePath: string) {
  const profile = makeFolder('explore')
  const context: BrowserContext = await chromium.launchPersistentContext(profile, {
    executablePath,
    args: chromiumFlags,
    headless: true,
  })
  const asked: string[] = []
  const said: string[] = []
  const open = async (): Promise<Tab> => {
    const tab = await context.newPage()
    tab.on('request', (request) => asked.push(request.url()))
    tab.on('console', (message) => said.push(message.text()))
    tab.on('pageerror', (error) => said.push(String(error)))
    return tab
  }
  const close = async (): Promise<void> => {
    await context.close()
    rmSync(profile, { recursive: true, force: true })
  }
  return { context, open, close, asked, said }
}

/** Opens a state of the page, and comes back once it is drawn. */
export async function drawn(tab: Tab, url: string, state: Readonly<Record<string, string>>): Promise<void> {
  const hash = `#${new URLSearchParams(state).toString()}`
  // Where the page is open already, another address behind `#` makes it draw that.
  if (tab.url().startsWith(`${url}/`))
    await tab.evaluate((next) => {
      // The same state by another order of its parts is drawn already.
      const parts = (text: string): string => text.slice(1).split('&').toSorted().join('&')
      if (parts(next) !== parts(location.hash)) delete document.body.dataset['drawn']
      location.hash = next
    }, hash)
  else await tab.goto(`${url}/${hash}`)
  await tab.waitForSelector('body[data-drawn]:not([aria-busy])')
}

/** A folder as a static server shows it, which knows nothing of lakes. */
export async function shownFolder(folder: string) {
  const types: Readonly<Record<string, string>> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' }
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://here')
    const path = join(folder, pathname === '/' ? 'index.html' : pathname)
    response.setHeader('content-type', types[extname(path)] ?? 'application/octet-stream')
    if (existsSync(path)) response.end(readFileSync(path))
    else response.writeHead(404).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const stop = async (): Promise<void> => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  return { url: `http://127.0.0.1:${port}`, stop }
}

/** DuckDB alone on the views of a lake. */
export async function bareLake(folder: string): Promise<Engine> {
  const engine = await Engine.open(':memory:', { threads: 1 })
  await engine.run(
    `ATTACH ${quote(inLake(folder, places.database))} AS lake (READ_ONLY); USE lake; SET TimeZone = 'UTC'`,
  )
  return engine
}
