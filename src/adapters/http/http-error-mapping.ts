/** How one drop is answered. */
export interface HttpErrorMapping {
  readonly status: number;
  /** Value of the dropped-reason header; without it the header is not sent. */
  readonly droppedReason?: string | undefined;
}
