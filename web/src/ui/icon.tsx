// Small pictures, drawn here so that no font has to have them.

const SHAPES = {
  copy: "M5 5h8v8H5zM3 10V3h7",
  first: "M4 3v10M13 3L6 8l7 5z",
  last: "M12 3v10M3 3l7 5-7 5z",
  back: "M11 3L5 8l6 5z",
  on: "M5 3l6 5-6 5z",
  close: "M4 4l8 8M12 4l-8 8",
  sun: "M8 5a3 3 0 100 6 3 3 0 000-6zM8 1v2M8 13v2M1 8h2M13 8h2M3 3l1.4 1.4M11.6 11.6L13 13M13 3l-1.4 1.4M4.4 11.6L3 13",
  moon: "M13 9.5A5.5 5.5 0 016.5 3 5.5 5.5 0 1013 9.5z",
} as const;

export function Icon({ name }: { name: keyof typeof SHAPES }) {
  return (
    <svg className="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={SHAPES[name]} />
    </svg>
  );
}
