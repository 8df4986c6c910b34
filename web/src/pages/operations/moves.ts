// What can be done with a subscription in each of its states. The server decides; this only spares people
// from buttons that it would refuse.

const MOVES: Record<string, string[]> = {
  REGISTERED: ["activate", "deactivate"],
  ACTIVE: ["pause", "drain", "deactivate"],
  PAUSED: ["resume", "drain", "deactivate"],
  DRAINING: ["activate", "deactivate"],
  DEACTIVATED: ["activate"],
};

/** A state that is not known here may allow anything. */
export function moves(state: string): string[] {
  return MOVES[state] ?? ["activate", "pause", "resume", "drain", "deactivate"];
}

/** States by the colour of what they resemble. */
export const TONES: Record<string, string> = {
  REGISTERED: "pending",
  ACTIVE: "completed",
  PAUSED: "waiting",
  DRAINING: "running",
  DEACTIVATED: "cancelled",
};
