// Checks certificates of pitlake without pitlake. ../explanation/proof.md explains the format and what it proves.
//   node verify-certificate.mjs CERTIFICATE… [--key PUBLIC] [--head FILE] [--files DIR] [--result FILE]
// Prints one line for each certificate: valid (exit code 0), or not valid with the reason (4).
//   --key     the public key, or its file, as the owner gave it to you; default: the key in the certificate
//   --head    a head that you stored
//   --files   a copy of the lake; the files that the certificate lists must have their SHA-256
//   --result  the stamped result; its stamp is compared, and its statistic computed again (needs @duckdb/node-api)
import { createHash, createPublicKey, verify } from 'node:crypto'
import { createReadStream, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
const refuse = (why) => { throw new Error(why, { cause: 'refused' }) }
const must = (fact, why) => fact || refuse(why)
const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest()
const [hex, isText] = [(bytes) => bytes.toString('hex'), (value) => typeof value === 'string']
const [isCount, isHash] = [(n) => Number.isSafeInteger(n) && n >= 0, (one) => isText(one) && /^[0-9a-f]{64}$/.test(one)]
const base64 = (text, what) =>
  must([Buffer.from(text, 'base64')].find((one) => one.toString('base64') === text), `${what} is no base64`)
const proofOf = (list, what) =>
  must(Array.isArray(list) && list.every(isHash) && list, `${what} is no list`).map((one) => Buffer.from(one, 'hex'))
/** JSON in which no object names a key twice: as many keys as texts before a colon. */
function strictJson(text) {
  let keys = -1 // The whole has no name, and is counted.
  const value = JSON.parse(text, function (_, one) { keys += Array.isArray(this) ? 0 : 1; return one })
  const words = text.match(/"(?:[^"\\]|\\.)*"(?:\s*:)?/g) ?? []
  must(words.every((word) => JSON.parse(word.replace(/\s*:$/, '')).isWellFormed()), 'half of a character stands there')
  return must(keys === words.filter((word) => word.endsWith(':')).length && value, 'a key stands there twice')
}
// --- signed notes and checkpoints (C2SP signed-note, tlog-checkpoint) with Ed25519
function readKey(text) {
  const form = /^([!-*,-~]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)$/
  const [, name, id, told] = form.exec(text) ?? refuse('the key is no public key')
  const bytes = base64(told, 'the key')
  must(bytes.length === 33 && bytes[0] === 1, 'the key is not one of Ed25519')
  must(hex(sha256(`${name}\n`, bytes)).slice(0, 8) === id, 'the key does not have the id that it names')
  const x = bytes.subarray(1).toString('base64url')
  return { name, id, key: createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' }) }
}
/** The text of a note that bears a sound signature of the key, and who else signed it. */
function signedText(note, { name, id, key }, what) {
  const at = note.lastIndexOf('\n\n')
  must(at >= 0 && note.endsWith('\n'), `${what} is no signed note`)
  const [text, others, signed] = [note.slice(0, at + 1), [], []]
  for (const line of note.slice(at + 2, -1).split('\n')) {
    const [, who, told] = /^— ([!-*,-~]+) ([A-Za-z0-9+/]+={0,2})$/.exec(line) ?? refuse(`${what} is signed otherwise`)
    const bytes = base64(told, `a signature of ${what}`)
    if (who !== name || hex(bytes.subarray(0, 4)) !== id) others.push(who)
    else signed.push(bytes.length === 68 && verify(null, Buffer.from(text), key, bytes.subarray(4)))
  }
  must(signed.every(Boolean), `the signature of ${what} is wrong`)
  return must(signed.length > 0, `${what} is not signed by ${name}`) && { text, others }
}
function readHead(note, key, what) {
  const { text, others } = signedText(must(isText(note) && note, `there is no ${what}`), key, what)
  const [, origin, size, told] =
    /^([!-~]+)\n(0|[1-9][0-9]{0,8})\n([A-Za-z0-9+/]{43}=)\n$/.exec(text) ?? refuse(`${what} is no checkpoint`)
  return { origin, size: Number(size), root: hex(base64(told, what)), others }
}
// --- trees of RFC 6962: a leaf is hashed behind 0, a node behind 1; left stands the largest power of two below n
const [leafOf, nodeOf] = [(text) => sha256('\0', text), (left, right) => sha256('\x01', left, right)]
const split = (n) => 2 ** Math.floor(Math.log2(n - 1))
/** The roots of the older and the newer tree to which a consistency proof leads. */
function fromBoth(older, newer, root, list) {
  const proof = proofOf(list, 'a proof of consistency')
  const next = () => proof.pop() ?? refuse('a proof of consistency is too short')
  const rise = (m, n, whole) => {
    if (m === n) return Array(2).fill(whole ? Buffer.from(root, 'hex') : next())
    const [left, other] = [split(n), next()]
    const [old, now] = m <= left ? rise(m, left, whole) : rise(m - left, n - left, false)
    return m <= left ? [old, nodeOf(now, other)] : [nodeOf(other, old), nodeOf(other, now)]
  }
  const roots = rise(older, newer, true).map(hex)
  return must(proof.length === 0 && roots, 'a proof of consistency is too long')
}
/** The root to which the proof of one leaf leads; the proof goes from the leaf upwards. */
function fromLeaf(size, index, leaf, list) {
  const proof = proofOf(list, 'the proof of the version')
  const next = () => proof.pop() ?? refuse('the proof of the version is too short')
  const rise = (at, n) => {
    if (n === 1) return leaf
    const [left, other] = [split(n), next()]
    return at < left ? nodeOf(rise(at, left), other) : nodeOf(other, rise(at - left, n - left))
  }
  const root = rise(index, size)
  return must(proof.length === 0 && hex(root), 'the proof of the version is too long')
}
// --- values of the certificate
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value)
const objectOf = (value, what) => must(isObject(value) && value, `${what} is no object`)
/** Lines of a list: texts without line feeds. */
function linesOf(value, what) {
  must(Array.isArray(value) && value.every((line) => isText(line) && line !== '' && !line.includes('\n')), `${what} are no lines`)
  return value
}
const linesDigest = (lines) => hex(sha256(...lines.map((line) => `${line}\n`)))
/** Lines that end with a hash, as a map from what stands before it; no name stands there twice. */
function hashesOf(lines, what) {
  const found = new Map()
  for (const line of lines) {
    const [, name, digest] = /^([^ \n][^\n]*) ([0-9a-f]{64})$/.exec(line) ?? refuse(`${what} have a line without a hash`)
    must(!found.has(name), `${what} name ${name} twice`)
    found.set(name, digest)
  }
  return found
}
/** Whether two values of JSON are the same, whatever the order of keys. */
function isSame(a, b) {
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((one, n) => isSame(one, b[n]))
  if (!isObject(a)) return a === b
  return isObject(b) && Object.keys(a).length === Object.keys(b).length &&
    Object.keys(a).every((key) => Object.hasOwn(b, key) && isSame(a[key], b[key]))
}
function check(file, asked) {
  const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(readFileSync(file))
  const at = text.lastIndexOf(',\n"signature": ')
  const told = strictJson(must(at >= 0 && text, 'there is no signature'))
  const { signature, public: own } = told
  must(text.slice(at) === `,\n"signature": ${JSON.stringify(signature)}\n}\n`, 'the signature is not the end')
  must(told.pitlake_certificate === 2 && told.algorithms === 'sha256 ed25519', 'a form or algorithms not known here')
  const key = readKey(must(isText(own) && (asked.key ?? own) === own && own, 'it was signed by another key than yours'))
  const body = `pitlake certificate\nsha256 ${hex(sha256(text.slice(0, at)))}\n`
  must(signedText(signature, key, 'the certificate').text === body, 'a byte of it changed since it was signed')
  const head = readHead(told.head, key, 'the head')
  checkLeaf(told, head)
  const kept = asked.head === undefined ? null : readHead(asked.head, key, 'the head that you kept')
  const heads = checkHeads(told.consistency, head, kept)
  checkQuery(told)
  checkPreregistered(told)
  return { told, head, lists: checkLists(told), stamps: stampsOf(told.time_stamps, heads, key) }
}
/** The leaf of the stamped version leads to the head. Three of its facts are hashes of lines in the certificate. */
function checkLeaf({ knowledge, leaf, rules, preregistered, live }, head) {
  const { version } = objectOf(knowledge, 'knowledge')
  const { index, committed_at: when, entry, inclusion } = objectOf(leaf, 'leaf')
  must(isCount(version) && isCount(index) && isCount(when), 'the version is no number')
  must(index < head.size && isHash(entry), 'the version is none of the log')
  const lines = [rules?.lines, preregistered?.queries, live?.lines]
  const [ruled, named, listed] = lines.map((one) => linesDigest(linesOf(one, 'rules, queries or lists')))
  const text = `pitlake version\nversion ${version}\ncommitted_at ${when}\nentry ${entry}\nrules ${ruled}\npreregistered ${named}\nlive ${listed}\n`
  must(fromLeaf(head.size, index, leafOf(text), inclusion) === head.root, 'the version does not lead to the head')
}
/** Query, knowledge, result and statistic follow from the stamp. */
function checkQuery({ query, knowledge, stamp, result, statistic }) {
  for (const [name, value] of Object.entries({ query, stamp, result })) objectOf(value, name)
  must(isText(query.text) && hex(sha256(query.text)) === query.sha256, 'the query has another digest')
  const { path, sha256: own, version, at, digest, query_digest: asked, variables } = stamp
  must(isHash(own) && isHash(digest) && path === `stamps/${digest.slice(0, 16)}.json`, 'the stamp is no stamp')
  must(isCount(version) && isCount(at), 'the stamp is no stamp')
  must(isSame([query.sha256, query.variables], [asked, objectOf(variables, 'variables')]), 'the stamp is of another query')
  must(result.file_sha256 === digest, 'the stamp is of another result')
  const as_of = Object.hasOwn(variables, 'as_of') ? variables.as_of : null
  const follows = knowledge.version === version && knowledge.stamped_at === at && isSame(knowledge.as_of, as_of)
  must(Object.hasOwn(knowledge, 'as_of') && follows, 'the knowledge does not follow from the stamp')
  must(statistic === null || isObject(statistic), 'the statistic is no statistic')
  if (statistic === null) return
  const values = isText(statistic.sql) && isObject(statistic.values) && Object.values(statistic.values)
  must(values && values.every((one) => one === null || isText(one)), 'the statistic is no statistic')
  const { sql } = statistic
  const shadowed = /\bresult"?[ \t\r\n]*(\([^)]*\)[ \t\r\n]*)?as[ \t\r\n]*((not[ \t\r\n]+)?materialized[ \t\r\n]*)?\(/i
  must(/result/i.test(sql) && !shadowed.test(sql), 'the statistic does not read the result')
}
/** The version in which the query was preregistered is that of the list. */
function checkPreregistered({ query, knowledge, preregistered }) {
  const found = new Map()
  for (const line of preregistered.queries) {
    const [, digest, version] = /^([0-9a-f]{64}) ([1-9][0-9]{0,14})$/.exec(line) ?? refuse('a query that is none is named')
    must(Number(version) <= knowledge.version && !found.has(digest), 'a query is named twice, or too late')
    found.set(digest, Number(version))
  }
  must(preregistered.named_in === (found.get(query.sha256) ?? null), 'the query was not named when it says')
}
/** Each list that is shown is the one of its version; gives the files of all. */
function checkLists({ live, rules, reads }) {
  const { complete, metrics } = objectOf(reads, 'reads')
  const [hashes, ruled] = [hashesOf(live.lines, 'the lists'), hashesOf(rules.lines, 'the rules')]
  const [lists, texts] = [objectOf(live.lists, 'lists'), objectOf(rules.text, 'rules')]
  must(complete === true || complete === false, 'nobody knows what was read')
  const files = []
  for (const [name, list] of Object.entries(lists)) {
    must(linesDigest(linesOf(list, `the files of ${name}`)) === hashes.get(name), `the list of ${name} is not that of the version`)
    for (const line of list) {
      const [, path, digest] = /^([^ \n]+) ([0-9a-f]{64}) (?:0|[1-9][0-9]*)(?: [^\n]+)?$/.exec(line) ?? refuse(`${name} lists no file`)
      must(/^(?![^\n]*\.\.)[0-9A-Za-z_][^\\:]*$/.test(path), `${name} lists a path that leads out of the lake`)
      files.push({ path, digest })
    }
    const [, metric = '-'] = /^(?:points|redated) ([^\n]+)$/.exec(name) ?? []
    must(metric === '-' || linesOf(metrics, 'metrics').includes(metric), `nothing says that ${metric} was read`)
  }
  for (const metric of linesOf(metrics, 'metrics')) {
    for (const other of [`points ${metric}`, 'points -', `redated ${metric}`, 'redated -'])
      must(!hashes.has(other) || Object.hasOwn(lists, other), `the list of ${other} is not shown`)
    must(!ruled.has(metric) || Object.hasOwn(texts, metric), `the rules of ${metric} are not shown`)
  }
  for (const [metric, text] of Object.entries(texts))
    must(isText(text) && hex(sha256(text)) === ruled.get(metric), `the rules of ${metric} were not in force`)
  const all = [...hashes.keys()].every((name) => Object.hasOwn(lists, name))
  must(complete || all, 'nobody knows what was read, and not all is shown')
  return { count: Object.keys(lists).length, files }
}
/** Older heads lead to the one of the certificate; one that somebody kept must be among them. */
function checkHeads(list, head, kept) {
  const heads = new Map([[head.size, head.root]])
  for (const { size, root, proof } of must(Array.isArray(list) && list, 'there are no proofs of consistency')) {
    must(isCount(size) && size > 0 && size < head.size && isHash(root), 'a proof of consistency of no older head')
    const roots = fromBoth(size, head.size, root, proof)
    must(`${roots}` === `${[root, head.root]}`, `the log does not go on from the head of ${size} entries`)
    heads.set(size, root)
  }
  if (!kept) return heads
  must(kept.origin === head.origin, 'the head that you kept is of another log')
  must(kept.size <= head.size, 'the head that you kept is younger: ask for a certificate made since')
  const root = heads.get(kept.size) ?? refuse('no proof leads from the head that you kept: ask for one --since it')
  return must(root === kept.root, 'the head that you kept is of another history') && heads
}
/** How to prove each time stamp (RFC 3161) of a head that it leads from. */
const stampsOf = (all = [], heads, key) => must(Array.isArray(all) && all, 'no time stamps').map(({ note, reply }) => {
  const [{ size, root }, bytes] = [readHead(note, key, 'a head with a time stamp'), base64(reply, 'a time stamp')]
  must(heads.get(size) === root, 'a time stamp of a head of another history')
  const forms = [note.slice(0, note.lastIndexOf('\n\n') + 1), note].map((form) => sha256(form))
  const digest = hex(forms.find((one) => bytes.includes(one)) ?? refuse('a time stamp of something else'))
  return `time stamp of ${size} entries (not checked): base64 -d > ${size}.tsr <<< ${reply} \
&& openssl ts -verify -digest ${digest} -in ${size}.tsr -CAfile CA.pem`
})
// --- a copy of the lake, and the result
/** SHA-256 of a file; undefined if it is not there. */
async function digestOf(path) {
  if (!existsSync(path)) return undefined
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk)
  return hash.digest('hex')
}
/** Each file that the certificate lists, and the note of the stamp, stand in the copy as they were. */
async function checkFiles(folder, { stamp, knowledge }, { files }) {
  const wanted = new Map(files.map(({ path, digest }) => [path, digest]))
  for (const [path, digest] of wanted) {
    const found = await digestOf(join(folder, path))
    must(found !== undefined, `${path} is not in the copy`)
    must(found === digest, `${path} has other bytes in the copy`)
  }
  const note = join(folder, stamp.path)
  if (!existsSync(note)) return `${wanted.size} files are as listed; the note of the stamp is not in the copy`
  must((await digestOf(note)) === stamp.sha256, 'the note of the stamp has other bytes in the copy')
  const { version, at, digest, query_digest: asked, detail } = JSON.parse(readFileSync(note, 'utf8'))
  const own = [knowledge.version, knowledge.stamped_at, stamp.digest, stamp.query_digest, stamp.variables]
  must(isSame(own, [version, at, digest, asked, detail?.variables]), 'the note of the stamp says something else')
  return `${wanted.size} files and the note of the stamp are as listed`
}
/** All nodes of a value. */
function* nodesOf(value) {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) yield value
  for (const part of Object.values(value)) yield* nodesOf(part)
}
/** Whether a parsed statistic is one SELECT that reads the table `result` and nothing else. */
function readsResult(tree) {
  if (tree.error !== false || tree.statements.length !== 1) return false
  const nodes = [...nodesOf(tree.statements)]
  const ctes = new Set(nodes.flatMap((one) => (one.cte_map?.map ?? []).map(({ key }) => key.toLowerCase())))
  const tables = nodes.filter(({ type }) => type === 'BASE_TABLE').map((one) =>
    [one.catalog_name, one.schema_name, one.table_name].filter(Boolean).join('.').toLowerCase())
  const strange = nodes.some(({ type, function: call }) =>
    type === 'EXPRESSION_LIST' || (type === 'TABLE_FUNCTION' && call.function_name !== 'unnest'))
  return !strange && !ctes.has('result') && tables.includes('result') &&
    tables.every((name) => name === 'result' || ctes.has(name))
}
/** The result has the digest and the stamp that the certificate names, and the statistic comes out again. */
async function checkResult(path, { query, knowledge, result, statistic }) {
  must((await digestOf(path)) === result.file_sha256, 'the result is another file')
  const { DuckDBInstance } = await import('@duckdb/node-api').catch(() => refuse('--result needs @duckdb/node-api'))
  const connection = await (await DuckDBInstance.create(':memory:')).connect()
  const rows = async (sql) => (await connection.runAndReadAll(sql)).getRowObjectsJson()
  const quoted = (text) => `'${text.replaceAll("'", "''")}'`
  const [{ note }] = await rows(`SELECT decode(value) AS note FROM parquet_kv_metadata(${quoted(path)})`)
  const own = JSON.parse(note)
  const said = [query.text, query.variables, knowledge.version, result.rows, result.rows_sha256]
  must(isSame(said, [own.query, own.variables, own.version, own.rows, own.result]), 'the result was stamped otherwise')
  if (statistic === null) return 'the result is the one'
  await rows(`CREATE TEMP TABLE result AS FROM read_parquet(${quoted(path)})`)
  await rows('SET enable_external_access = false') // The words of the statistic are a third party's.
  const [{ tree }] = await rows(`SELECT CAST(json_serialize_sql(${quoted(statistic.sql)}) AS VARCHAR) AS tree`)
  must(readsResult(JSON.parse(tree)), 'the statistic does not read the result alone')
  const again = await rows(`SELECT CAST(COLUMNS(*) AS VARCHAR) FROM (${statistic.sql}\n)`)
  const isIt = again.length === 1 && isSame(Object.entries(again[0]), Object.entries(statistic.values))
  return must(isIt, 'the statistic is another') && 'the statistic comes out again'
}
const unproved = 'not proved: that merges left values as they were, and that the result follows from the files'
const option = { type: 'string' }
const options = { key: option, head: option, files: option, result: option }
const { values: asked, positionals: files } = parseArgs({ options, allowPositionals: true })
process.exitCode = files.length > 0 ? 0 : 4
for (const file of files) {
  try {
    const key = existsSync(asked.key ?? '') ? readFileSync(asked.key, 'utf8').trim() : asked.key
    const { told, head, stamps, lists } = check(file, { key, head: asked.head && readFileSync(asked.head, 'utf8') })
    const who = key === undefined ? 'its own key, which nobody named' : 'your key'
    const others = head.others.length === 0 ? '' : `, also by ${head.others.join(', ')} (not checked)`
    const named = told.preregistered.queries.length
    const preregistered = `${named} preregistered ${named === 1 ? 'query' : 'queries'}`
    const what = `${lists.count} lists of ${lists.files.length} files, ${preregistered}`
    const more = [`valid ${file}: version ${told.knowledge.version} of ${head.origin}, by ${who}${others}`, what, ...stamps]
    if (asked.files !== undefined) more.push(await checkFiles(asked.files, told, lists))
    if (asked.result !== undefined) more.push(await checkResult(asked.result, told))
    console.log([...more, unproved].join('; '))
  } catch (error) {
    process.exitCode = 4
    const why = `${error.cause === 'refused' ? '' : 'it cannot be read: '}${error.message}`
    console.log(`not valid ${file}: ${why.replaceAll(/[^ -~]+/g, ' ')}`) // None of its words may act on a terminal.
  }
}
