/**
 * JSON as RFC 8785 knows it: numbers are doubles, so an amount in minor units and a fence are written as text. A member that
 * is undefined is left out.
 */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json | undefined };
