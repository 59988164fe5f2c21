import { expect, test } from 'vitest';
import { createWebhookSigner } from '../../src/gateway/webhook-signature.ts';
import { OnceperError } from '../../src/kernel/error.ts';

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const signer = createWebhookSigner(SECRET);
const body = '{"type":"transfer.succeeded","data":{}}';
const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000);
const why = (headers: Parameters<typeof signer.verify>[0], bytes = Buffer.from(body)) => {
  const verified = signer.verify(headers, bytes);
  return verified.kind === 'refused' ? verified.why : null;
};

test('the example of the Standard Webhooks specification has the signature that it states', () => {
  const at = new Date(1_614_265_330_000);
  const signed = signer.sign('msg_p5jXN8AQM9LWM0D4loKWxJek', at, '{"test": 2432232314}');
  expect(signed['webhook-signature']).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
});

test('a message is genuine with its id, for the bytes and the minutes that were signed', () => {
  const headers = signer.sign('msg_1', new Date(), body);
  expect(signer.verify({ ...headers }, Buffer.from(body))).toEqual({ kind: 'genuine', id: 'msg_1', text: body });
  expect(why({ ...headers }, Buffer.from(`${body} `))).toBe('No matching signature found');
  expect(why({ ...headers, 'webhook-id': 'msg_2' })).toBe('No matching signature found');
  expect(why({ ...headers, 'webhook-timestamp': '1' })).toBe('Message timestamp too old');
  expect(why({ 'webhook-id': 'msg_1' })).toBe('Missing required headers');
  expect(why({ ...headers, 'webhook-signature': 'v1' })).toBe('No matching signature found');
});

test('a message older or newer than five minutes is refused, whoever signed it', () => {
  expect(why({ ...signer.sign('msg_1', minutesAgo(4.9), body) })).toBeNull();
  expect(why({ ...signer.sign('msg_1', minutesAgo(5.1), body) })).toBe('Message timestamp too old');
  expect(why({ ...signer.sign('msg_1', minutesAgo(-5.1), body) })).toBe('Message timestamp too new');
});

test('one of several signatures suffices, so that a secret can be changed', () => {
  const headers = signer.sign('msg_1', new Date(), body);
  expect(why({ ...headers, 'webhook-signature': `v1,AAAA v2,zzz ${headers['webhook-signature']}` })).toBeNull();
});

test('bytes that only look the same once decoded are refused', () => {
  const mark = '{"type":"�"}';
  const headers = signer.sign('msg_1', new Date(), mark);
  expect(why({ ...headers }, Buffer.from(mark))).toBeNull();
  expect(why({ ...headers }, Buffer.from('{"type":"\xff"}', 'latin1'))).toBe('the body is not UTF-8');
});

test.each(['', 'whsec_', 'whsec_c2hvcnQ=', 'not a secret at all, but long enough to be one'])(
  'the secret %j is refused without being repeated',
  (secret) => {
    const make = () => createWebhookSigner(secret);
    expect(make).toThrow(OnceperError);
    expect(make).toThrow(/^the webhook secret is not whsec_ followed by base64 of at least 24 bytes$/);
  },
);
