import { createRoot } from "react-dom/client";

import { App } from "./app";
import { applyTheme } from "./shell/theme";
import "./styles/base.css";
import "./styles/parts.css";

applyTheme();
const root = document.getElementById("root");
if (root) createRoot(root).render(<App />);
