import fc from 'fast-check';
import { expect, test } from 'vitest';
import { actorId, mayAct, normaliseActorId, parseRoles } from '../../src/kernel/actor.ts';

test('one person has one id, however it is spelled', () => {
  for (const name of ['alice', 'ALICE', ' Alice ', 'ａｌｉｃｅ']) expect(actorId('user', name)).toBe('user:alice');
  expect(actorId('os', 'alice')).not.toBe(actorId('user', 'alice'));
  expect(actorId('user', 'Alice  Lee')).toBe('user:alice-lee');
});

test('a name of nothing, or of too much, is none', () => {
  expect(() => actorId('user', ' ')).toThrow(expect.objectContaining({ code: 'malformed_actor' }));
});

test('every text becomes an id that the audit takes, and stays what it is', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const id = normaliseActorId(text);
      expect(id).toMatch(/^[^\s]{1,200}$/);
      expect(id).not.toMatch(/[A-Z]/);
      expect(normaliseActorId(id)).toBe(id);
    }),
  );
});

test('whoever has a role may read; neither of the others includes the other', () => {
  const actor = (...roles: readonly ('viewer' | 'operator' | 'approver')[]) => ({
    id: 'user:a',
    name: null,
    roles,
    token: null,
  });
  expect(mayAct(actor('operator'), 'viewer')).toBe(true);
  expect(mayAct(actor('operator'), 'approver')).toBe(false);
  expect(mayAct(actor('approver'), 'operator')).toBe(false);
  expect(mayAct(actor(), 'viewer')).toBe(false);
});

test('roles are named with commas or blanks; a word that is none names nothing', () => {
  expect(parseRoles('approver, operator approver')).toEqual(['operator', 'approver']);
  expect(parseRoles('operator,king')).toBeNull();
  expect(parseRoles('')).toBeNull();
});
