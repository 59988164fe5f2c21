import { expect, test } from 'vitest';
import { arrayLiteral, isPlainArray } from '../../src/store/array-literal.ts';
import { useTestLedger } from '../support/ledger-rows.ts';

const ledger = useTestLedger();

test('texts arrive in the database letter for letter, whatever is in them', async () => {
  const texts = ['', 'NULL', 'null', ' a ', 'a,b', '{}', '{"x":"y"}', '\\', '\\"', '"', "it's", 'é\n\t🎈', '\\n', null];
  const { rows } = await ledger.db.query<{ texts: unknown }>('select to_json($1::text[]) as texts', [texts]);
  expect(rows).toEqual([{ texts }]);
});

test('numbers of every size, truth values and no element at all arrive as they are', async () => {
  const { rows } = await ledger.db.query(
    `select $1::int8[] = array[9223372036854775807, -1, null]::int8[] as big, $2::int4[] = array[1, 2] as small,
            $3::float8[] = array[0.5, 1e21, 1e-7]::float8[] as float, $4::bool[] = array[true, false] as bool,
            $5::text[] = array[]::text[] as empty`,
    [[9_223_372_036_854_775_807n, -1n, null], [1, 2], [0.5, 1e21, 1e-7], [true, false], []],
  );
  expect(rows).toEqual([{ big: true, small: true, float: true, bool: true, empty: true }]);
});

test('an array of anything else is left to the driver', () => {
  expect(isPlainArray([new Date(0)])).toBe(false);
  expect(isPlainArray([['nested']])).toBe(false);
  expect(isPlainArray([undefined])).toBe(false);
  expect(isPlainArray('text')).toBe(false);
  expect(arrayLiteral([1n, 'a', null])).toBe('{1,"a",NULL}');
});
