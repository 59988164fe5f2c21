/** Something that others wait for, and that happens once. */
export interface Gate {
  readonly passed: Promise<void>;
  open(): void;
}

/** A gate that is shut. */
export function createGate(): Gate {
  let open = () => undefined as void;
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open: () => open() };
}
