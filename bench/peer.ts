/** What a peer is, as its own file says it; printed, stored and shown beside its figures. */
export interface About {
  readonly name: string;
  /** The package whose installed version is told; null for what the root installs itself. */
  readonly packages: readonly string[];
  /** What holds for the item after a crash at any point, and what doesn't. */
  readonly guarantee: string;
  readonly settings: string;
  /** What somebody who asks for a done item again is told. */
  readonly again: string;
  /** The pages that the settings follow. */
  readonly documentation: readonly string[];
}

/** Servers that a peer may need beside PostgreSQL; the bench starts them. */
export interface PeerServers {
  readonly databaseUrl: string;
  readonly redisPort: number | null;
  readonly temporalAddress: string | null;
}

/** A peer between `open` and `close` is ready to take items; outside of that it polls nothing, so that it disturbs no other's round. */
export interface Peer {
  open(): Promise<void>;
  /** Does new items; returns when the work of each is committed and the peer has noted it as done. */
  perform(keys: readonly string[]): Promise<void>;
  /** Asks for items that are done; returns when each asker has the peer's answer and all that it set going has ended. */
  again(keys: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

/** What a peer's file exports. */
export interface PeerModule {
  readonly about: About;
  readonly createPeer: (servers: PeerServers) => Peer;
}

/** A line to a peer's process. */
export interface PeerRequest {
  readonly verb: 'about' | 'open' | 'perform' | 'again' | 'close';
  readonly round?: string;
  readonly items?: number;
}

/** Its answer, one line for each request in their order. */
export type PeerReply =
  | { readonly kind: 'done' }
  | {
      readonly kind: 'about';
      readonly about: About;
      readonly versions: Readonly<Record<string, string>>;
      readonly node: string;
    }
  | { readonly kind: 'failed'; readonly message: string };
