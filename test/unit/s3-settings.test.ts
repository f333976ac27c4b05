import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { exitCode } from '../../src/base/errors.ts'
import { readS3 } from '../../src/maintenance/publish/s3-ask.ts'
import { scratch } from '../helpers/scratch.ts'

const home = scratch('aws')

const config = `[default]
region = eu-central-1
[profile  team]
region=eu-west-1 # of the team
endpoint_url = https://s3.team.example
s3 =
  addressing_style = path
[profile single]
sso_session = team
`
const credentials = `; keys
[default]
aws_access_key_id = of-default
aws_secret_access_key = secret of default
[team]
aws_access_key_id = of-team
aws_secret_access_key = secret=of/team+
aws_session_token = of the hour
`
beforeAll(() => {
  mkdirSync(join(home, '.aws'))
  for (const [name, text] of Object.entries({ config, credentials })) writeFileSync(join(home, '.aws', name), text)
})

const keys = { AWS_ACCESS_KEY_ID: 'own', AWS_SECRET_ACCESS_KEY: 'secret of mine' }
const read = async (env: Readonly<Record<string, string>> = {}) =>
  await readS3('s3://lake/a//b/', { HOME: home, ...env })

test('profiles say what the environment does not', async () => {
  expect(await read()).toEqual({
    bucket: 'lake',
    prefix: 'a/b/',
    endpoint: 'https://s3.eu-central-1.amazonaws.com',
    region: 'eu-central-1',
    credentials: { id: 'of-default', secret: 'secret of default', token: undefined },
  })
  expect(await read({ AWS_PROFILE: 'team' })).toMatchObject({
    endpoint: 'https://s3.team.example',
    region: 'eu-west-1',
    credentials: { id: 'of-team', secret: 'secret=of/team+', token: 'of the hour' },
  })
  const moved = { AWS_PROFILE: 'team', HOME: '/nowhere', AWS_CONFIG_FILE: join(home, '.aws/config') }
  const both = { ...moved, AWS_SHARED_CREDENTIALS_FILE: join(home, '.aws/credentials') }
  expect(await read(both)).toMatchObject({ region: 'eu-west-1', credentials: { id: 'of-team' } })
})

test('the environment is stronger, and its keys keep to themselves', async () => {
  const own = { ...keys, AWS_PROFILE: 'team', AWS_REGION: 'us-west-2', AWS_DEFAULT_REGION: 'x' }
  expect(await read(own)).toMatchObject({
    region: 'us-west-2',
    credentials: { id: 'own', secret: 'secret of mine', token: undefined },
  })
  const both = { AWS_ENDPOINT_URL: 'https://all.example', AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:9000/s3/' }
  expect(await read(both)).toMatchObject({ endpoint: 'http://127.0.0.1:9000/s3' })
  expect(await read({ AWS_REGION: 'cn-north-1' })).toMatchObject({ endpoint: 'https://s3.cn-north-1.amazonaws.com.cn' })
})

test.each([
  [{ AWS_ENDPOINT_URL: 'http://minio.example' }, /https \(http only to loopback\)/],
  [
    { AWS_ENDPOINT_URL: 'https://me:password1@minio.example' },
    /AWS_ENDPOINT_URL: expected an address.*minio\.example$/,
  ],
  [{ AWS_ENDPOINT_URL: 'minio' }, /AWS_ENDPOINT_URL/],
  [{ AWS_REGION: 'a b' }, /AWS_REGION/],
  [{ AWS_PROFILE: 'nobody' }, /AWS_PROFILE nobody: expected a profile/],
  [{ AWS_PROFILE: 'single' }, /aws configure export-credentials --profile single/],
  [{ HOME: '/nowhere' }, /AWS_ACCESS_KEY_ID: .*set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE/],
  [{ AWS_ACCESS_KEY_ID: 'own' }, /AWS_SECRET_ACCESS_KEY: /],
])('%o is a mistake of the configuration, in one line', async (env, words) => {
  const error = await read(env).catch((caught: unknown) => caught)
  expect([exitCode(error), String(error)]).toEqual([2, expect.stringMatching(words)])
  expect(String(error)).not.toMatch(/password1|\n/)
})
