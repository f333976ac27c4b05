import { join } from 'node:path'
import { isLoopback } from '../config/settings.ts'
import { usage } from '../errors.ts'
import { textOf } from '../store/files.ts'
import type { Credentials } from './s3-sign.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** Where a bucket is and with which key it is asked. */
export type S3Settings = Readonly<Awaited<ReturnType<typeof readS3>>>

/** Bucket and prefix of an `s3://` text, which ends with `/` where it is not empty; what may be a key in it is not shown. */
export function parseS3(text: string): { readonly bucket: string; readonly prefix: string } {
  const [, bucket = '', path = ''] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/s.exec(text) ?? []
  const parts = path.split('/').filter((part) => part !== '')
  if (bucket === '' || parts.some((part) => part === '.' || part === '..'))
    throw usage('destination s3://…', {
      expected: 's3://bucket/prefix (3 to 63 small letters, digits, dots and hyphens), no key in it',
      got: text.includes('@') ? 'an address with a user' : text,
    })
  return { bucket, prefix: parts.map((part) => `${part}/`).join('') }
}

/** All that AWS's own programs would take from the environment and the profile files, as far as it is for S3. */
export async function readS3(text: string, env: Environment) {
  const { bucket, prefix } = parseS3(text)
  const profile = await readProfile(env)
  const endpoint = first(env['AWS_ENDPOINT_URL_S3'], env['AWS_ENDPOINT_URL'], profile.values['endpoint_url'])
  const named = first(env['AWS_REGION'], env['AWS_DEFAULT_REGION'], profile.values['region'])
  const region = named ?? 'us-east-1'
  if (!/^[a-z0-9-]{1,40}$/i.test(region))
    throw usage('AWS_REGION', { expected: 'the name of a region, such as eu-central-1', got: region })
  const home = `https://s3.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`
  return {
    bucket,
    prefix,
    /** Origin and path before the bucket, without a trailing slash. */
    endpoint: endpoint === undefined ? home : checkEndpoint(endpoint),
    region,
    credentials: credentialsOf(env, profile),
  }
}

function first(...values: readonly (string | undefined)[]): string | undefined {
  return values.map((value) => value?.trim()).find((value) => value !== undefined && value !== '')
}

function checkEndpoint(endpoint: string): string {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined
  const wanted = 'an address such as https://minio.example.org:9000'
  if (!url || !['http:', 'https:'].includes(url.protocol) || url.username !== '' || url.search !== '')
    throw usage('AWS_ENDPOINT_URL', { expected: wanted, got: url ? `${url.protocol}//${url.host}` : 'something else' })
  if (url.protocol === 'http:' && !isLoopback(endpoint))
    throw usage('AWS_ENDPOINT_URL', { expected: 'https (http only to loopback)', got: `http://${url.host}` })
  return endpoint.replace(/\/+$/, '')
}

interface Profile {
  readonly name: string
  readonly values: Readonly<Record<string, string>>
}

/** What a profile says in both files; that of the credentials' file is stronger. */
async function readProfile(env: Environment): Promise<Profile> {
  const name = first(env['AWS_PROFILE'], env['AWS_DEFAULT_PROFILE']) ?? 'default'
  const folder = join(env['HOME'] ?? env['USERPROFILE'] ?? '/', '.aws')
  const config = sectionsOf((await textOf(env['AWS_CONFIG_FILE'] ?? join(folder, 'config'))) ?? '')
  const keys = sectionsOf((await textOf(env['AWS_SHARED_CREDENTIALS_FILE'] ?? join(folder, 'credentials'))) ?? '')
  const found = [config.get(`profile ${name}`) ?? config.get(name), keys.get(name)]
  if (found.every((section) => section === undefined) && name !== 'default')
    throw usage(`AWS_PROFILE ${name}`, { expected: 'a profile of the files in ~/.aws', got: 'none of that name' })
  return { name, values: Object.assign({}, ...found) as Profile['values'] }
}

/** The sections of an AWS profile file by name: `key = value` a line, `#` and `;` begin comments, indented lines are nested. */
function sectionsOf(text: string): Map<string, Record<string, string>> {
  const sections = new Map<string, Record<string, string>>()
  let section: Record<string, string> | undefined
  for (const line of text.split(/\r?\n/)) {
    const [, title] = /^\[\s*([^\]]*?)\s*\]/.exec(line) ?? []
    const [, key, value = ''] = /^([A-Za-z0-9_]+)\s*=\s*(.*?)\s*$/.exec(line) ?? []
    if (title !== undefined) sections.set(title.replace(/\s+/g, ' '), (section = {}))
    else if (key !== undefined && section) section[key.toLowerCase()] = value.replace(/\s[#;].*$/, '')
  }
  return sections
}

function credentialsOf(env: Environment, { name, values }: Profile): Credentials {
  const given = [env['AWS_ACCESS_KEY_ID'], env['AWS_SECRET_ACCESS_KEY']].map((text) => first(text))
  const [id, secret] = given.some((text) => text !== undefined)
    ? given
    : [first(values['aws_access_key_id']), first(values['aws_secret_access_key'])]
  const own = given.some((text) => text !== undefined)
  const token = own ? first(env['AWS_SESSION_TOKEN']) : first(values['aws_session_token'])
  if (id !== undefined && secret !== undefined) return { id, secret, token }
  const lacking = id === undefined ? 'AWS_ACCESS_KEY_ID' : 'AWS_SECRET_ACCESS_KEY'
  const elsewhere = Object.keys(values).find((key) => /^(?:sso_|role_arn|credential_process|source_profile)/.test(key))
  throw usage(lacking, {
    expected: 'the key of the bucket, there or in a profile of ~/.aws/credentials',
    got: elsewhere === undefined ? 'nothing' : `a profile ${name} that fetches its key (${elsewhere})`,
    next:
      elsewhere === undefined
        ? 'set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE'
        : `run eval "$(aws configure export-credentials --profile ${name} --format env)" first`,
  })
}
