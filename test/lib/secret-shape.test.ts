// Texts with the shape of a secret, and texts that only look busy.
import { expect, test } from 'vitest'
import { secretShape } from '../../src/lib/secret-shape.ts'

test.each([
  'ghp_0123456789abcdefghijklmnopqrstuvwxyz',
  'glpat-abcdefghij0123456789',
  'AKIAIOSFODNN7EXAMPLE',
  'sk-ant-api03-AbCdEfGhIjKlMnOpQrStUv0123',
  'xoxb-1234567890-abcdefghij',
  '--token=abc',
  '--db-password=abc',
  'postgres://user:secret@db/name',
  '-----BEGIN RSA PRIVATE KEY-----',
])('%s is seen to be one', (text) => {
  expect(secretShape(text)).not.toBeNull()
})

test.each([
  '/app/dist/index.js',
  '--port=8080',
  '/data/sk-learn-examples-and-more-of-them',
  'https://example.com/path',
  'a sentence about tokens and passwords',
  '--token-limit',
  '',
])('%j is not', (text) => {
  expect(secretShape(text)).toBeNull()
})
