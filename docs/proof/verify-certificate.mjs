// Checks certificates of pitlake without pitlake; ../proof.md tells their format, and what they prove.
//   node verify-certificate.mjs CERTIFICATE… [--key PUBLIC] [--head FILE] [--tables DIR]
// prints a line each: valid (exit 0), or not and why (exit 4). --key: the public key, or its file, as its owner gave it
// to you by another way, else the certificate's own. --head: a head that you kept. --tables: published tables, which
// DuckDB (@duckdb/node-api) digests anew; the result beside a certificate gives its figure again.
import { createHash, createPublicKey, verify } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
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
/** The root of a tree of which some leaves are known; the proof tells the rest from the left, or (`up`) upwards. */
function fromSome(size, known, list, what, up = false) {
  const proof = proofOf(list, what)
  const next = () => (up ? proof.pop() : proof.shift()) ?? refuse(`${what} is too short`)
  const [indices, has] = [[...known.keys()], (from, n) => indices.some((at) => at >= from && at < from + n)]
  const rise = (from, n) => {
    if (!has(from, n) || n === 1) return known.get(from) ?? next()
    const [left, behind] = [split(n), from + split(n)]
    const right = up && !has(behind, n - left) ? next() : undefined
    return nodeOf(rise(from, left), right ?? rise(behind, n - left))
  }
  const root = size === 0 ? sha256('') : rise(0, size)
  return must(proof.length === 0 && hex(root), `${what} is too long`)
}
/** Members of a tree of named values, once they are proved: its value tells how many it has, and its root. */
function provenMembers(value, { members, proof }, what) {
  const form = /^(0|[1-9][0-9]{0,8}) ([0-9a-f]{64})$/
  const [, count, root] = (isText(value) && form.exec(value)) || refuse(`${what} is no tree`)
  must(Array.isArray(members) && members.length > 0, `${what} proves nothing`)
  const known = new Map(members.map(({ index, name, value: own }, n) => {
    const follows = isCount(index) && index > (members[n - 1]?.index ?? -1) && index < Number(count)
    must(follows && isText(name) && isText(own) && !own.includes('\n'), `${what} has a member that cannot be`)
    return [index, leafOf(`${name}\n${own}`)]
  }))
  must(fromSome(Number(count), known, proof, `the proof of ${what}`) === root, `${what} has another root`)
  return members
}
/** The value of a tree over all of its named values. */
function treeOf(members) {
  must(members.flat().every(isText), 'names and values are no texts')
  const known = new Map(members.map(([name, value], index) => [index, leafOf(`${name}\n${value}`)]))
  return `${known.size} ${fromSome(known.size, known, [], 'a tree')}`
}
function check(file, asked) {
  const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(readFileSync(file))
  const at = text.lastIndexOf(',\n"signature": ')
  const told = strictJson(must(at >= 0 && text, 'there is no signature'))
  const { signature, public: own, entry } = told
  must(text.slice(at) === `,\n"signature": ${JSON.stringify(signature)}\n}\n`, 'the signature is not the end')
  must(told.pitlake_certificate === 1 && told.algorithms === 'sha256 ed25519', 'a form or algorithms not known here')
  const key = readKey(must(isText(own) && (asked.key ?? own) === own && own, 'it was signed by another key than yours'))
  const body = `pitlake certificate\nsha256 ${hex(sha256(text.slice(0, at)))}\n`
  must(signedText(signature, key, 'the certificate').text === body, 'a byte of it changed since it was signed')
  const head = readHead(told.head, key, 'the head')
  const { index, version, committed_at: when, sha256: digest, state, inclusion } = entry ?? {}
  const counts = [index, version, when, told.knowledge?.version].every(isCount) && told.knowledge.version <= version
  must(counts && index < head.size && isHash(digest) && isText(state), 'the entry is none of the log, or too early')
  const leaf = leafOf(`pitlake entry\nversion ${version}\ncommitted_at ${when}\nsha256 ${digest}\nstate ${state}\n`)
  const root = fromSome(head.size, new Map([[index, leaf]]), inclusion, 'the proof of the entry', true)
  must(root === head.root, 'the entry does not lead to the head')
  const kept = asked.head === undefined ? null : readHead(asked.head, key, 'the head that you kept')
  const heads = checkHeads(told.consistency, head, kept)
  const proved = checkState(told, state, provenMembers(state, told.state, 'the state'))
  return { told, head, proved, stamps: stampsOf(told.time_stamps, heads, key) }
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
/** The member of a name; undefined where two neighbours show that a tree, sorted as it is, has none. */
function memberOf(value, members, name, why) {
  const all = [{ index: -1, name: '' }, ...members, { index: parseInt(value), name: '\u{10ffff}' }]
  const lacks = all.some((one, n) => one.index + 1 === all[n + 1]?.index && one.name < name && name < all[n + 1].name)
  return members.find((one) => one.name === name) ?? (lacks ? undefined : refuse(why))
}
/** What it says of series, tables, rules, the query and tries is what the state tells; gives what was proved. */
function checkState({ query, tries, reads, knowledge }, state, groups) {
  const find = (name, member, why) => {
    const group = memberOf(state, groups, name, why)
    const found = group && memberOf(group.value, group.members, member, why)
    return found === undefined ? undefined : must(found.text, why)
  }
  for (const group of groups) {
    const members = provenMembers(group.value, group, `the group ${group.name}`)
    for (const { name, value, text, months, series } of members) {
      must(text === undefined || (isText(text) && hex(sha256(text)) === value), `the text of ${name} is not in force`)
      must(months === undefined || treeOf(months) === value, `the months of ${name} are not those of the state`)
      if (!group.name.startsWith('series ')) continue
      const own = name.split('|').map(decodeURIComponent)
      const same = (part, n) => (part ?? '') === own[n] || (n === 2 && own[n] === '')
      const right = series?.length === 6 && series.every(same) && group.name === `series ${own[0]}`
      must(right, `${name} is not the series that it says`)
      find('rules', own[0], `the rules of ${name} are not shown`)
    }
    const some = members.length < parseInt(group.value) && /^(registry$|series )/.test(group.name)
    const free = reads?.complete === true || (!some && groups.length === parseInt(state))
    must(free, 'nobody knows what was read, and not all is shown')
  }
  must(isText(query?.text) && hex(sha256(query.text)) === query.sha256, 'the query has another digest')
  const named = strictJson(find('state', 'tries', 'nothing shows how many were tried') ?? '{"queries":[]}').queries
  must(tries?.count === named.length, 'the count of tries is not that of the state')
  const own = named.find((one) => one.sha256 === query.sha256 && one.version <= knowledge.version)?.version
  must(tries.named_in === null || tries.named_in === own, 'the query was not named when it says')
  return ['series ', 'registry'].map((start) => groups.flatMap((one) => one.name.startsWith(start) ? one.members : []))
}
// --- with DuckDB: what the published tables hold, and the figure
async function duckdb() {
  const { DuckDBInstance } = await import('@duckdb/node-api').catch(() => refuse('--tables needs @duckdb/node-api'))
  const connection = await (await DuckDBInstance.create(':memory:')).connect()
  return async (sql) => (await connection.runAndReadAll(sql)).getRowObjectsJson()
}
const [isSame, quoted] = [(a, b) => JSON.stringify(a) === JSON.stringify(b), (one) => `'${one.replaceAll("'", "''")}'`]
const macros = ["SET TimeZone = 'UTC'", 'CREATE MACRO ms(x) AS (epoch_us(x) + 999) // 1000',
  'CREATE MACRO bits(x) AS hex(CAST(CAST(CAST(x AS DOUBLE) AS BIT) AS BLOB))',
  `CREATE MACRO line(x) AS CAST(to_json(list_sort(list_filter(map_entries(from_json(to_json(x),
    '"MAP(VARCHAR, VARCHAR)"')), lambda pair: pair.value IS NOT NULL))) AS VARCHAR)`]
/** The rows of a Delta table, by its log; false where it has none. */
async function published(folder, rows) {
  const [log, live] = [join(folder, '_delta_log'), new Set()]
  const names = readdirSync(log).filter((name) => /^\d{20}\.(checkpoint\.parquet|json)$/.test(name)).sort()
  const whole = names.findLast((name) => name.endsWith('t')) ?? ''
  const sql = `SELECT CAST(to_json({add: add, protocol: protocol}) AS VARCHAR) AS line FROM ${quoted(join(log, whole))}`
  const held = whole === '' ? [] : (await rows(sql)).map(({ line }) => line)
  const later = names.filter((name) => name.endsWith('n') && name > whole).map((name) => join(log, name))
  for (const line of [...held, ...later.flatMap((file) => readFileSync(file, 'utf8').split('\n'))].filter(Boolean)) {
    const { add, remove, protocol } = JSON.parse(line)
    // Later forms of tables leave out rows that stand in files, and a path with other signs may be a pattern.
    const known = [add, remove].every((one) => !one || /^(?!.*\.\.)\w[\w./-]*$/.test(one.path))
    must(known && (protocol?.minReaderVersion ?? 1) === 1, 'a form of tables not known here')
    live.delete(remove?.path)
    if (add) live.add(add.path)
  }
  const files = [...live].map((path) => quoted(join(folder, path)))
  return files.length > 0 && `read_parquet([${files}], union_by_name = true, hive_partitioning = false)`
}
/** Points as ../proof.md tells them: of each its series, month and instant, text and record. */
const pointsOf = (points) => `(SELECT to_json([metric, asset, "interval", currency, exchange, network]) AS own, part,
    seen, rest, bits(ms(t)) || CASE WHEN v IS NULL THEN bits('nan') WHEN NOT isnan(v) THEN bits(v) END ||
    bits(ms(available_at)) || bits(8 * strlen(rest) + list_position(['provider', 'observed', 'stated', 'assumed',
      'override'], basis) - 1) AS record
  FROM (SELECT *, strftime(make_timestamp(epoch_us(t)), '%Y-%m') AS part, ms(observed_at) AS seen, concat_ws(' ',
    CASE WHEN basis <> 'provider' OR ms(computed_at) <> ms(available_at) THEN 'c' || ms(computed_at) END,
    CASE WHEN ms(available_rule_at) <> ms(available_at) THEN 'r' || ms(available_rule_at) END,
    'o' || strlen(o) || ' ' || o, 'x' || strlen(extra) || ' ' || extra) AS rest FROM ${points}))`
/** Rows of a table of the registry as ../proof.md tells them: of each its table, day and instant, and its record. */
function rowsOf(name, table) {
  const told = (at, columns) => `SELECT '"${name}"' AS own, ms(${at}) AS seen, sha256(line(one)) AS record, '' AS rest,
    strftime(make_timestamp(ms(${at}) * 1000), '%Y-%m-%d') AS part FROM (SELECT ${columns} FROM ${table}) AS one`
  if (!name.startsWith('history_')) return `(${told('observed_at', '*')})`
  const ends = `${told('valid_to', 'id, valid_to, closed_by')} WHERE valid_to IS NOT NULL OR closed_by IS NOT NULL`
  return `(${told('valid_from', '* EXCLUDE (valid_to, closed_by)')} UNION ALL ${ends})`
}
/** Tells of each series or table what came until an instant: a tree over months or days, each a chain of instants. */
async function digested(source, until, rows) {
  const all = source ? await rows(`SELECT own, part, sum(n) || ' ' || list_reduce(list(seen || ' ' || n || ' ' || digest
    ORDER BY seen), lambda chain, step: 'b' || sha256(chain || chr(10) || step), '') AS value FROM (
    SELECT own, part, seen, count(*) AS n, sha256(unhex(string_agg(record, '' ORDER BY record, rest)) || encode(
      string_agg(rest, '' ORDER BY record, rest))) AS digest FROM ${source} WHERE coalesce(seen, 0) <= ${until}
    GROUP BY own, part, seen) GROUP BY own, part ORDER BY part`) : []
  const found = Map.groupBy(all, ({ own }) => JSON.stringify(JSON.parse(own)))
  return (own) => treeOf((found.get(JSON.stringify(own)) ?? []).map(({ part, value }) => [part, value]))
}
/** Digests the published rows of all that it proves, as they were when its entry was committed. */
async function checkTables(folder, { entry }, [series, tables], rows) {
  for (const sql of macros) await rows(sql)
  const held = async (name, told) => {
    const table = await published(join(folder, name), rows)
    return await digested(table && told(table), Math.ceil(entry.committed_at / 1000), rows)
  }
  const wanted = series.map((one) => quoted(one.series[0]))
  const points = series.length > 0 && (await held('points', (all) => pointsOf(`${all} WHERE metric IN (${wanted})`)))
  for (const { name, value, series: own } of series)
    must(points(own) === value, `the points of ${name} are not those that the state tells`)
  for (const { name, value } of tables) {
    must(/^(history|snapshot|registry)_\w+$/.test(name), `of ${name} an earlier program told what nobody publishes`)
    const own = await held(name, (all) => rowsOf(name, all))
    must(own(name) === value, `the rows of ${name} are not those that the state tells`)
  }
  return `${series.length} series and ${tables.length} tables of the registry digested anew`
}
/** The result beside the certificate, or in the folder of the tables: what it says of itself, and its figure again. */
async function checkResult(folders, { query, knowledge, result, figure }, rows) {
  const there = folders.flatMap((one) => readdirSync(one).map((name) => join(one, name)))
  const path = there.find((name) => /\.par/.test(name) && hex(sha256(readFileSync(name))) === result.file_sha256)
  if (path === undefined) return 'the result is not at hand'
  const [{ note }] = await rows(`SELECT decode(value) AS note FROM parquet_kv_metadata(${quoted(path)})`)
  const own = JSON.parse(note)
  const said = [query.text, query.variables, knowledge.version, result.rows, result.rows_sha256]
  must(isSame(said, [own.query, own.variables, own.version, own.rows, own.result]), 'the result was stamped otherwise')
  if (figure === null) return 'the result is the one'
  await rows(`CREATE TEMP TABLE result AS FROM read_parquet(${quoted(path)})`)
  await rows('SET enable_external_access = false') // The figure's words are a stranger's.
  const again = await rows(`SELECT CAST(COLUMNS(*) AS VARCHAR) FROM (${figure.sql}\n)`)
  return must(isSame(again, [figure.values]), 'the figure is another') && 'the figure comes again'
}
const options = { key: { type: 'string' }, head: { type: 'string' }, tables: { type: 'string' } }
const { values: asked, positionals: files } = parseArgs({ options, allowPositionals: true })
process.exitCode = files.length > 0 ? 0 : 4
for (const file of files) {
  try {
    const key = existsSync(asked.key ?? '') ? readFileSync(asked.key, 'utf8').trim() : asked.key
    const { told, head, stamps, proved } = check(file, { key, head: asked.head && readFileSync(asked.head, 'utf8') })
    const { knowledge: { version }, entry, tries } = told
    const later = entry.version === version ? '' : `, proved in that of ${entry.version}`
    const who = key === undefined ? 'its own key, which nobody named' : 'your key'
    const others = head.others.length === 0 ? '' : `, also by ${head.others.join(', ')} (not checked)`
    const what = `${proved[0].length} series, ${proved[1].length} tables of the registry, ${tries.count} tries`
    const more = [`valid ${file}: version ${version}${later} of ${head.origin}, by ${who}${others}`, what, ...stamps]
    const rows = asked.tables !== undefined && (await duckdb())
    if (rows) more.push(await checkTables(asked.tables, told, proved, rows))
    if (rows) more.push(await checkResult([dirname(file), asked.tables], told, rows))
    console.log(more.join('; '))
  } catch (error) {
    process.exitCode = 4
    const why = `${error.cause === 'refused' ? '' : 'it cannot be read: '}${error.message}`
    console.log(`not valid ${file}: ${why.replaceAll(/[^ -~]+/g, ' ')}`) // None of its words may act on a terminal.
  }
}
