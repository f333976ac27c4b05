/** Files that views send to the server, and the answers to them. */

import { request, RequestSeries } from './requests.js'
import { shell } from './command-texts.js'
import { figure, html, quiet } from './dom.js'

/** Bytes of the longest request that the server takes. */
const longestRequest = Number(document.documentElement.dataset.longestRequest)

/** Bytes of the largest file that fits into a request, in base64 under a name next to other fields. */
export const fileRoom = (name, fields = {}) =>
  Math.floor((longestRequest - new Blob([JSON.stringify({ ...fields, [name]: '' })]).size) / 4) * 3

/** File that was chosen. It is read once, so that all answers are about the file as it was then. */
export class ChosenFile {
  #file
  #base64 = null

  constructor(file) {
    this.#file = file
    this.name = file.name
  }

  /**
   * Sends the file to a path, in base64 under a name next to other fields, and returns the answer. `command` is the
   * command line that takes larger files.
   */
  async send(path, name, { fields = {}, command, signal }) {
    const room = fileRoom(name, fields)
    if (this.#file.size > room)
      throw new Error(`${this.name}: expected at most ${figure(room)} bytes, which fit into a request to this server, got ${
        figure(this.#file.size)}; ${command} ${shell(this.name)} takes larger files`)
    this.#base64 ??= base64(this.#file).catch(() => {
      throw new Error(`${this.name}: expected a file, got something that the browser cannot read`)
    })
    return await (await request(path, { ...fields, [name]: await this.#base64 }, signal)).json()
  }
}

async function base64(file) {
  const bytes = new Uint8Array(await file.arrayBuffer())
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
}

/**
 * Place of the answers about chosen files. It keeps its content while a different view is open. Of several questions
 * only the answer to the last one is shown.
 */
export class AnswerPlace {
  #id
  #parts = []
  #section = null
  #questions = new RequestSeries()

  constructor(id) {
    this.#id = id
  }

  /** Makes the section that a drawing of the view shows, with the content so far. */
  section() {
    this.#section = html`<section id=${this.#id} aria-live="polite"></section>`
    this.#show(this.#parts)
    return this.#section
  }

  /** Shows that a question is asked, then the parts that `ask` makes of the answer, or why there is none. */
  async answer(name, waiting, ask) {
    const signal = this.#questions.next()
    this.#show([quiet(waiting)])
    const refused = (error) => [html`<h2>${name}</h2>`, html`<p class="refused" role="alert">${error.message}</p>`]
    const parts = await ask(signal).catch(refused)
    if (!signal.aborted) this.#show(parts)
  }

  #show(parts) {
    this.#parts = parts
    this.#section?.replaceChildren(...parts)
  }
}
