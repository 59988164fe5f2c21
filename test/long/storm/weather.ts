import { randomBytes } from 'node:crypto';
import type { StatedSettings } from '../../../src/gateway/simulator/settings.ts';
import { pause } from './pause.ts';

/** What differs from fair weather: shares of all transfers, other settings, how badly webhooks are sent. */
interface Change {
  readonly mix?: NonNullable<StatedSettings['mix']>;
  readonly settings?: StatedSettings;
  readonly webhooks?: Omit<NonNullable<StatedSettings['webhooks']>, 'url' | 'secret'>;
}

/** How the counterparty behaves: several faults of it may hold at once, and a restart of it forgets none. */
export interface Weather {
  readonly secret: string;
  /** For so long a share of all transfers is treated so, or another setting holds. */
  hold(change: Change, ms: number): Promise<boolean>;
  /** Tells the counterparty how things are; it has just started, or something changed. */
  tell(): Promise<void>;
}

/** Fair weather at a counterparty whose address is `url`, and which forgets a number after so long. */
export function openWeather(url: string, webhooksUrl: string, forgetAfterMs: number | null): Weather {
  const secret = `whsec_${randomBytes(32).toString('base64')}`;
  const holding = new Set<Change>();
  const tell = async () => {
    const all = [...holding];
    const mix = all.flatMap((change) => change.mix ?? []);
    const total = mix.reduce((sum, { percent }) => sum + percent, 0);
    const fair: StatedSettings = {
      forgetAfterMs,
      delayMs: 1_800,
      retryAfterSeconds: 1,
      webhooks: Object.assign({ url: webhooksUrl, secret, copies: 1 }, ...all.map((change) => change.webhooks ?? {})),
    };
    const stated = Object.assign({}, fair, ...all.map((change) => change.settings ?? {})) as StatedSettings;
    const shares = total <= 100 ? mix : mix.map((part) => ({ ...part, percent: (part.percent * 99) / total }));
    const answer = await fetch(`${url}/control/modes`, {
      method: 'PUT',
      body: JSON.stringify({ ...stated, mix: shares }),
    });
    if (!answer.ok) throw new Error(`the simulator took no settings: ${await answer.text()}`);
  };
  const told = async () => {
    try {
      await tell();
      return true;
    } catch (error) {
      // It is down at this moment: when it is up again it is told.
      if (error instanceof TypeError) return false;
      throw error;
    }
  };
  return {
    secret,
    tell,
    async hold(change, ms) {
      holding.add(change);
      const heard = await told();
      await pause(ms);
      holding.delete(change);
      await told();
      return heard;
    },
  };
}
