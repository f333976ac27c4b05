"""Checks certificates of pitlake without pitlake. ../explanation/proof.md explains the format and what it proves.

    python3 verify_certificate.py CERTIFICATE... [--key PUBLIC] [--head FILE] [--files DIR] [--result FILE]

Prints one line for each certificate: valid (exit code 0), or not valid with the reason (4).
    --key     the public key, or its file, as the owner gave it to you; default: the key in the certificate
    --head    a head that you stored
    --files   a copy of the lake; the files that the certificate lists must have their SHA-256
    --result  the stamped result; its stamp is compared, and its statistic computed again (needs the package duckdb)
"""
import base64, hashlib, json, os, re, sys  # noqa: E401
class Refused(Exception): """Why a certificate is not valid."""
def must(fact, why):
    if not fact:
        raise Refused(why)
    return fact
def sha256(data):
    return hashlib.sha256(data if isinstance(data, bytes) else data.encode()).digest()
def read(path):
    with open(path, "rb") as opened:
        return opened.read()
def is_text(value):
    return isinstance(value, str)
def count_of(value):
    """A whole number as JSON may write it; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if 0 <= value < 2**53 and value == int(value) else None
def is_hash(value):
    return is_text(value) and re.fullmatch(r"[0-9a-f]{64}", value) is not None
def unbase64(text, what):
    data = base64.b64decode(text, validate=True)
    return must(base64.b64encode(data).decode() == text and data, f"{what} is no base64")
def proof_of(told, what):
    must(isinstance(told, list) and all(is_hash(one) for one in told), f"{what} is no list of hashes")
    return [bytes.fromhex(one) for one in told]
def strict_json(text):
    """JSON in which no object names a key twice, and nothing but JSON."""
    def once(pairs):
        must(len({key for key, _ in pairs}) == len(pairs), "a key stands there twice")
        return dict(pairs)
    value = json.loads(text, object_pairs_hook=once, parse_constant=lambda name: must(False, f"{name} is no JSON"))
    json.dumps(value, ensure_ascii=False).encode()  # Fails where half of a character stands.
    return value
# --- Ed25519 (RFC 8032): points of the curve in extended coordinates
P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)
def recover_x(y, sign):
    """The x of a point of which y and the lowest bit of x are known; None where there is none."""
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    if square == 0:
        return None if sign else 0
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P != 0:
        x = x * ROOT % P
    if (x * x - square) % P != 0:
        return None
    return P - x if (x & 1) != sign else x
def point_of(data):
    sign, y = divmod(int.from_bytes(data, "little"), 1 << 255)
    x = recover_x(y, sign)
    return None if x is None else (x, y, 1, x * y % P)
def add(a, b):
    e, f = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    g, h = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = f - e, h - g, h + g, f + e
    return (e * f % P, g * h % P, f * g % P, e * h % P)
def multiply(scalar, point):
    result = (0, 1, 1, 0)
    while scalar > 0:
        if scalar & 1:
            result = add(result, point)
        point = add(point, point)
        scalar >>= 1
    return result
def encoded(point):
    inverse = pow(point[2], P - 2, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | ((x & 1) << 255)).to_bytes(32, "little")
BASE_Y = 4 * pow(5, P - 2, P) % P
BASE = (recover_x(BASE_Y, 0), BASE_Y, 1, recover_x(BASE_Y, 0) * BASE_Y % P)
def is_signed(key, message, signature):
    point, s = point_of(key), int.from_bytes(signature[32:], "little")
    if point is None or len(signature) != 64 or s >= ORDER:
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % ORDER
    x, y, z, t = multiply(k, point)
    return encoded(add(multiply(s, BASE), (P - x, y, z, P - t))) == signature[:32]
# --- signed notes and checkpoints (C2SP signed-note, tlog-checkpoint)
def read_key(text):
    form = re.fullmatch(r"([!-*,-~]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)", text)
    name, own, told = must(form, "the key is no public key").groups()
    data = unbase64(told, "the key")
    must(len(data) == 33 and data[0] == 1, "the key is not one of Ed25519")
    must(sha256(name.encode() + b"\n" + data).hex()[:8] == own, "the key does not have the id that it names")
    return name, own, data[1:]
def signed_text(note, key, what):
    """The text of a note that bears a sound signature of the key, and who else signed it."""
    name, own, point = key
    at = note.rfind("\n\n")
    must(at >= 0 and note.endswith("\n"), f"{what} is no signed note")
    text, others, signed = note[: at + 1], [], []
    for line in note[at + 2 : -1].split("\n"):
        form = re.fullmatch(r"— ([!-*,-~]+) ([A-Za-z0-9+/]+={0,2})", line)
        who, told = must(form, f"{what} has no such signature").groups()
        data = unbase64(told, f"a signature of {what}")
        if who != name or data[:4].hex() != own:
            others.append(who)
        else:
            signed.append(len(data) == 68 and is_signed(point, text.encode(), data[4:]))
    must(all(signed), f"the signature of {what} is wrong")
    must(signed, f"{what} is not signed by {name}")
    return text, others
def read_head(note, key, what):
    text, others = signed_text(must(is_text(note) and note, f"there is no {what}"), key, what)
    form = re.fullmatch(r"([!-~]+)\n(0|[1-9][0-9]{0,8})\n([A-Za-z0-9+/]{43}=)\n", text)
    origin, size, told = must(form, f"{what} is no checkpoint").groups()
    return {"origin": origin, "size": int(size), "root": unbase64(told, what).hex(), "others": others}
# --- trees of RFC 6962: a leaf is hashed behind 0, a node behind 1; left stands the largest power of two below n
def leaf_of(text):
    return sha256(b"\x00" + text.encode())
def node_of(left, right):
    return sha256(b"\x01" + left + right)
def split(n):
    return 1 << ((n - 1).bit_length() - 1)
def taken(proof, at, what):
    """The next hash of a proof, from its end (-1) or its beginning (0)."""
    must(proof, f"{what} is too short")
    return proof.pop(at)
def from_both(older, newer, root, proof):
    """The roots of the older and the newer tree to which a consistency proof leads."""
    def rise(m, n, whole):
        if m == n:
            return (bytes.fromhex(root) if whole else taken(proof, -1, "a proof of consistency"),) * 2
        left, other = split(n), taken(proof, -1, "a proof of consistency")
        old, now = rise(m, left, whole) if m <= left else rise(m - left, n - left, False)
        return (old, node_of(now, other)) if m <= left else (node_of(other, old), node_of(other, now))
    old, now = rise(older, newer, True)
    must(not proof, "a proof of consistency is too long")
    return old.hex(), now.hex()
def from_leaf(size, index, leaf, told):
    """The root to which the proof of one leaf leads; the proof goes from the leaf upwards."""
    proof = proof_of(told, "the proof of the version")
    def rise(at, n):
        if n == 1:
            return leaf
        left, other = split(n), taken(proof, -1, "the proof of the version")
        return node_of(rise(at, left), other) if at < left else node_of(other, rise(at - left, n - left))
    root = rise(index, size)
    must(not proof, "the proof of the version is too long")
    return root.hex()
# --- values of the certificate
def object_of(value, what):
    must(isinstance(value, dict), f"{what} is no object")
    return value
def lines_of(value, what):
    """Lines of a list: texts without line feeds."""
    right = isinstance(value, list) and all(is_text(line) and line and "\n" not in line for line in value)
    must(right, f"{what} are no lines")
    return value
def lines_digest(lines):
    return sha256("".join(f"{line}\n" for line in lines)).hex()
def hashes_of(lines, what):
    """Lines that end with a hash, as a map from what stands before it; no name stands there twice."""
    found = {}
    for line in lines:
        form = must(re.fullmatch(r"([^ \n][^\n]*) ([0-9a-f]{64})", line), f"{what} have a line without a hash")
        must(form[1] not in found, f"{what} name {form[1]} twice")
        found[form[1]] = form[2]
    return found
def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)
def double(number):
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
def is_same(a, b):
    """Whether two values of JSON are the same, whatever the order of keys; numbers are doubles."""
    if is_number(a) and is_number(b):
        return double(a) == double(b)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(is_same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(is_same(one, other) for one, other in zip(a, b))
    return type(a) is type(b) and not is_number(a) and a == b
def check(file, asked):
    text = read(file).decode()
    at = text.rfind(',\n"signature": ')
    told = strict_json(must(at >= 0 and text, "there is no signature"))
    signature, own = told.get("signature"), told.get("public")
    end = f',\n"signature": {json.dumps(signature, ensure_ascii=False)}\n}}\n'
    must(text[at:] == end, "the signature is not the end")
    form = (count_of(told.get("pitlake_certificate")), told.get("algorithms"))
    must(form == (2, "sha256 ed25519"), "a form or algorithms not known here")
    must(is_text(own) and asked.get("key", own) == own, "it was signed by another key than yours")
    key = read_key(own)
    body = f"pitlake certificate\nsha256 {sha256(text[:at]).hex()}\n"
    must(signed_text(signature, key, "the certificate")[0] == body, "a byte of it changed since it was signed")
    head = read_head(told.get("head"), key, "the head")
    check_leaf(told, head)
    kept = "head" in asked and read_head(asked["head"], key, "the head that you kept")
    heads = check_heads(told.get("consistency"), head, kept)
    check_query(told)
    check_preregistered(told)
    lists = check_lists(told)
    stamps = told.get("time_stamps", [])
    must(isinstance(stamps, list), "the time stamps are no list")
    return told, head, lists, [stamp_of(one, heads, key) for one in stamps]
def check_leaf(told, head):
    """The leaf of the stamped version leads to the head. Three of its facts are hashes of lines in the certificate."""
    version = count_of(object_of(told.get("knowledge"), "knowledge").get("version"))
    leaf = object_of(told.get("leaf"), "leaf")
    index, when, entry = count_of(leaf.get("index")), count_of(leaf.get("committed_at")), leaf.get("entry")
    must(None not in (version, index, when), "the version is no number")
    must(index < head["size"] and is_hash(entry), "the version is none of the log")
    parts = (("rules", "lines"), ("preregistered", "queries"), ("live", "lines"))
    lines = [object_of(told.get(name), name).get(key) for name, key in parts]
    ruled, named, listed = (lines_digest(lines_of(one, "rules, queries or lists")) for one in lines)
    text = (f"pitlake version\nversion {version}\ncommitted_at {when}\nentry {entry}\n"
        f"rules {ruled}\npreregistered {named}\nlive {listed}\n")
    root = from_leaf(head["size"], index, leaf_of(text), leaf.get("inclusion"))
    must(root == head["root"], "the version does not lead to the head")
SHADOWED = r'''\bresult"?[ \t\r\n]*(\([^)]*\)[ \t\r\n]*)?as[ \t\r\n]*((not[ \t\r\n]+)?materialized[ \t\r\n]*)?\('''
def check_query(told):
    """Query, knowledge, result and statistic follow from the stamp."""
    query, stamp, result = (object_of(told.get(name), name) for name in ("query", "stamp", "result"))
    knowledge, statistic = told["knowledge"], told.get("statistic", "")
    digest, variables = stamp.get("digest"), stamp.get("variables")
    right = is_text(query.get("text")) and sha256(query["text"]).hex() == query.get("sha256")
    must(right, "the query has another digest")
    right = is_hash(stamp.get("sha256")) and is_hash(digest) and stamp.get("path") == f"stamps/{digest[:16]}.json"
    must(right, "the stamp is no stamp")
    version, at = count_of(stamp.get("version")), count_of(stamp.get("at"))
    must(None not in (version, at), "the stamp is no stamp")
    object_of(variables, "variables")
    right = query["sha256"] == stamp.get("query_digest") and is_same(query.get("variables"), variables)
    must(right, "the stamp is of another query")
    must(result.get("file_sha256") == digest, "the stamp is of another result")
    follows = count_of(knowledge["version"]) == version and count_of(knowledge.get("stamped_at")) == at
    as_of = "as_of" in knowledge and is_same(knowledge["as_of"], variables.get("as_of"))
    must(follows and as_of, "the knowledge does not follow from the stamp")
    must(statistic is None or isinstance(statistic, dict), "the statistic is no statistic")
    if statistic is None:
        return
    sql, values = statistic.get("sql"), statistic.get("values")
    right = is_text(sql) and isinstance(values, dict) and all(one is None or is_text(one) for one in values.values())
    must(right, "the statistic is no statistic")
    shadowed = re.search(SHADOWED, sql, re.A | re.I)
    must(re.search("result", sql, re.A | re.I) and not shadowed, "the statistic does not read the result")
def check_preregistered(told):
    """The version in which the query was preregistered is that of the list."""
    found, until, named = {}, count_of(told["knowledge"]["version"]), told["preregistered"]
    for line in named["queries"]:
        form = must(re.fullmatch(r"([0-9a-f]{64}) ([1-9][0-9]{0,14})", line, re.A), "a query that is none is named")
        must(int(form[2]) <= until and form[1] not in found, "a query is named twice, or too late")
        found[form[1]] = int(form[2])
    expected, told_in = found.get(told["query"]["sha256"]), named.get("named_in", "")
    right = told_in is None if expected is None else count_of(told_in) == expected
    must(right, "the query was not named when it says")
def check_lists(told):
    """Each list that is shown is the one of its version; gives how many there are, and the files of all."""
    reads = object_of(told.get("reads"), "reads")
    complete, metrics = reads.get("complete"), lines_of(reads.get("metrics"), "metrics")
    hashes = hashes_of(told["live"]["lines"], "the lists")
    ruled = hashes_of(told["rules"]["lines"], "the rules")
    lists, texts = object_of(told["live"].get("lists"), "lists"), object_of(told["rules"].get("text"), "rules")
    must(complete is True or complete is False, "nobody knows what was read")
    files = []
    for name, lines in lists.items():
        right = lines_digest(lines_of(lines, f"the files of {name}")) == hashes.get(name)
        must(right, f"the list of {name} is not that of the version")
        for line in lines:
            form = re.fullmatch(r"([^ \n]+) ([0-9a-f]{64}) (?:0|[1-9][0-9]*)(?: [^\n]+)?", line)
            path, digest = must(form, f"{name} lists no file").groups()
            inside = re.fullmatch(r"(?![^\n]*\.\.)[0-9A-Za-z_][^\\:]*", path)
            must(inside, f"{name} lists a path that leads out of the lake")
            files.append((path, digest))
        form = re.fullmatch(r"(?:points|redated) ([^\n]+)", name)
        metric = form[1] if form else "-"
        must(metric == "-" or metric in metrics, f"nothing says that {metric} was read")
    for metric in metrics:
        for other in (f"points {metric}", "points -", f"redated {metric}", "redated -"):
            must(other not in hashes or other in lists, f"the list of {other} is not shown")
        must(metric not in ruled or metric in texts, f"the rules of {metric} are not shown")
    for metric, text in texts.items():
        right = is_text(text) and sha256(text).hex() == ruled.get(metric)
        must(right, f"the rules of {metric} were not in force")
    must(complete or all(name in lists for name in hashes), "nobody knows what was read, and not all is shown")
    return len(lists), files
def check_heads(told, head, kept):
    """Older heads lead to the one of the certificate; one that somebody kept must be among them."""
    heads = {head["size"]: head["root"]}
    must(isinstance(told, list), "there are no proofs of consistency")
    for one in told:
        size, root = count_of(one["size"]), one["root"]
        must(size is not None and 0 < size < head["size"] and is_hash(root), "a proof of consistency of no older head")
        roots = from_both(size, head["size"], root, proof_of(one["proof"], "a proof of consistency"))
        must(roots == (root, head["root"]), f"the log does not go on from the head of {size} entries")
        heads[size] = root
    if not kept:
        return heads
    must(kept["origin"] == head["origin"], "the head that you kept is of another log")
    must(kept["size"] <= head["size"], "the head that you kept is younger: ask for a certificate made since")
    must(kept["size"] in heads, "no proof leads from the head that you kept: ask for one --since it")
    must(heads[kept["size"]] == kept["root"], "the head that you kept is of another history")
    return heads
def stamp_of(told, heads, key):
    """How to prove a time stamp (RFC 3161) of a head that it leads from."""
    note, reply = told["note"], told["reply"]
    head, data = read_head(note, key, "a head with a time stamp"), unbase64(reply, "a time stamp")
    size = head["size"]
    must(heads.get(size) == head["root"], "a time stamp of a head of another history")
    forms = [sha256(form) for form in (note[: note.rfind("\n\n") + 1], note)]
    digest = must(next((one for one in forms if one in data), None), "a time stamp of something else").hex()
    return (f"time stamp of {size} entries (not checked): base64 -d > {size}.tsr <<< {reply}"
        f" && openssl ts -verify -digest {digest} -in {size}.tsr -CAfile CA.pem")
# --- a copy of the lake, and the result
def digest_of(path):
    """SHA-256 of a file; None if it is not there."""
    if not os.path.exists(path):
        return None
    digest = hashlib.sha256()
    with open(path, "rb") as opened:
        while chunk := opened.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
def check_files(folder, told, files):
    """Each file that the certificate lists, and the note of the stamp, stand in the copy as they were."""
    stamp, knowledge, wanted = told["stamp"], told["knowledge"], dict(files)
    for path, digest in wanted.items():
        found = digest_of(os.path.join(folder, path))
        must(found, f"{path} is not in the copy")
        must(found == digest, f"{path} has other bytes in the copy")
    note = os.path.join(folder, stamp["path"])
    if not os.path.exists(note):
        return f"{len(wanted)} files are as listed; the note of the stamp is not in the copy"
    must(digest_of(note) == stamp["sha256"], "the note of the stamp has other bytes in the copy")
    own = json.loads(read(note))
    said = [own.get(key) for key in ("version", "at", "digest", "query_digest")]
    said.append(own.get("detail", {}).get("variables"))
    mine = [knowledge["version"], knowledge["stamped_at"], *(stamp[key] for key in ("digest", "query_digest", "variables"))]
    must(is_same(mine, said), "the note of the stamp says something else")
    return f"{len(wanted)} files and the note of the stamp are as listed"
def nodes_of(value):
    """All nodes of a value."""
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from nodes_of(part)
def reads_result(tree):
    """Whether a parsed statistic is one SELECT that reads the table `result` and nothing else."""
    if tree["error"] is not False or len(tree["statements"]) != 1:
        return False
    nodes = list(nodes_of(tree["statements"]))
    ctes = {entry["key"].lower() for one in nodes for entry in (one.get("cte_map") or {}).get("map", [])}
    parts = ("catalog_name", "schema_name", "table_name")
    tables = [".".join(one[part] for part in parts if one[part]).lower() for one in nodes if one.get("type") == "BASE_TABLE"]
    strange = any(one.get("type") == "EXPRESSION_LIST" or (one.get("type") == "TABLE_FUNCTION"
        and one["function"]["function_name"] != "unnest") for one in nodes)
    others = any(name != "result" and name not in ctes for name in tables)
    return not strange and not others and "result" not in ctes and "result" in tables
def check_result(path, told):
    """The result has the digest and the stamp that the certificate names, and the statistic comes out again."""
    result, statistic = told["result"], told["statistic"]
    must(digest_of(path) == result["file_sha256"], "the result is another file")
    import duckdb  # Only --result needs it.
    connection = duckdb.connect(":memory:")
    def rows(sql):
        return connection.execute(sql).fetchall()
    def quoted(text):
        return "'" + text.replace("'", "''") + "'"
    own = json.loads(rows(f"SELECT decode(value) FROM parquet_kv_metadata({quoted(path)})")[0][0])
    said = [told["query"]["text"], told["query"]["variables"], told["knowledge"]["version"]]
    stamped = [own.get(key) for key in ("query", "variables", "version", "rows", "result")]
    must(is_same([*said, result.get("rows"), result.get("rows_sha256")], stamped), "the result was stamped otherwise")
    if statistic is None:
        return "the result is the one"
    rows(f"CREATE TEMP TABLE result AS FROM read_parquet({quoted(path)})")
    rows("SET enable_external_access = false")  # The words of the statistic are a third party's.
    tree = json.loads(rows(f"SELECT CAST(json_serialize_sql({quoted(statistic['sql'])}) AS VARCHAR)")[0][0])
    must(reads_result(tree), "the statistic does not read the result alone")
    sql = f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM ({statistic['sql']}\n)"
    names = [name for (name, *_) in rows(f"DESCRIBE {sql}")]
    again = [list(zip(names, row)) for row in rows(sql)]
    must(again == [list(statistic["values"].items())], "the statistic is another")
    return "the statistic comes out again"
UNPROVED = "not proved: that merges left values as they were, and that the result follows from the files"
def main(words):
    files, asked, words = [], {}, iter(words)
    for word in words:
        if word in ("--key", "--head", "--files", "--result"):
            asked[word[2:]] = next(words, "") or "(nothing)"
        else:
            files.append(word)
    code = 0 if files else 4
    for file in files:
        try:
            given = {name: asked[name] for name in asked if name in ("key", "head")}
            for name in given:
                if name == "head" or os.path.exists(given[name]):
                    given[name] = read(given[name]).decode().strip("" if name == "head" else None)
            told, head, (count, listed), stamps = check(file, given)
            version, named = count_of(told["knowledge"]["version"]), len(told["preregistered"]["queries"])
            who = "your key" if "key" in asked else "its own key, which nobody named"
            others = f", also by {', '.join(head['others'])} (not checked)" if head["others"] else ""
            more = [f"valid {file}: version {version} of {head['origin']}, by {who}{others}"]
            more += [f"{count} lists of {len(listed)} files, {named} preregistered {'query' if named == 1 else 'queries'}", *stamps]
            if "files" in asked:
                more.append(check_files(asked["files"], told, listed))
            if "result" in asked:
                more.append(check_result(asked["result"], told))
            print("; ".join([*more, UNPROVED]))
        except Exception as error:  # Whatever it is, it is not valid.
            code = 4
            why = error if isinstance(error, Refused) else f"it cannot be read ({type(error).__name__}: {error})"
            # What it says stands in words of the certificate: none of them may act on a terminal.
            print(f"not valid {file}: {re.sub('[^ -~]+', ' ', str(why))}")
    return code
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
