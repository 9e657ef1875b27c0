/** A part of a vector: plain JSON, whose fields the player knows by its kind. */
// biome-ignore lint/suspicious/noExplicitAny: each kind of part has its own fields.
export type Json = Record<string, any>;
