//! The stylesheet of the image, for light and dark pages.

/// Without CSS variables, because some SVG viewers don't support them.
pub(super) const STYLE: &str = "\
.page{fill:#ffffff}.band{fill:#f1f5f9}
text{fill:#0f172a}.name{font-weight:700}.title{font-weight:600}.note{fill:#475569}
.phase{fill:#334155;font-weight:700}.mid{text-anchor:middle}.before{text-anchor:end}
.number{font-weight:700}.terminal text{fill:#ffffff;font-weight:600}
.shape,.key{stroke-width:1.5}.card{stroke-width:1.2}.badge{stroke-width:1.5}
.shape,.key,.card{fill:#ffffff;stroke:#64748b}.badge{fill:#e2e8f0;stroke:#cbd5e1}
.terminal .shape{fill:#334155;stroke:#334155}
.sent .shape,.sent .key{fill:#eff6ff;stroke:#1d4ed8}.sent .card{fill:#dbeafe;stroke:#1d4ed8}
.sent .badge{fill:#dbeafe;stroke:#93c5fd}
.choice .shape{fill:#faf5ff;stroke:#7c3aed}.choice .badge{fill:#ffffff;stroke:#7c3aed}
.decision .shape{fill:#f5f3ff;stroke:#6d28d9}.decision .badge{fill:#6d28d9;stroke:#6d28d9}
.confidence .shape,.confidence .key{fill:#f0fdfa;stroke:#0f766e}.confidence .badge{fill:#0f766e;stroke:#0f766e}
.gate .shape,.gate .key{fill:#fffbeb;stroke:#b45309;stroke-width:2}.gate .badge{fill:#b45309;stroke:#b45309}
.decision .number,.confidence .number,.gate .number{fill:#ffffff}
.line{fill:none;stroke-width:1.6}.line.way{stroke:#475569}.head.way{fill:#475569}
.line.loop{stroke:#b45309}.head.loop{fill:#b45309}
.line.error{stroke:#dc2626;stroke-dasharray:5 4}.head.error{fill:#dc2626}
.label{paint-order:stroke;stroke:#ffffff;stroke-width:3px;stroke-linejoin:round;font-weight:600}
.label.way{fill:#334155}.label.loop{fill:#92400e}.label.error{fill:#b91c1c}
@media (prefers-color-scheme:dark){
.page{fill:#0f172a}.band{fill:#1a2438}
text{fill:#f1f5f9}.note{fill:#b6c2d4}.phase{fill:#cbd5e1}
.terminal text{fill:#0f172a}.terminal .shape{fill:#cbd5e1;stroke:#cbd5e1}
.shape,.key,.card{fill:#27344a;stroke:#94a3b8}.badge{fill:#475569;stroke:#64748b}
.sent .shape,.sent .key{fill:#172e5c;stroke:#60a5fa}.sent .card{fill:#1e3a70;stroke:#60a5fa}
.sent .badge{fill:#1e4391;stroke:#60a5fa}
.choice .shape{fill:#2b2144;stroke:#a78bfa}.choice .badge{fill:#1a1433;stroke:#a78bfa}
.decision .shape{fill:#2e2250;stroke:#a78bfa}.decision .badge{fill:#a78bfa;stroke:#a78bfa}
.confidence .shape,.confidence .key{fill:#0d3431;stroke:#2dd4bf}.confidence .badge{fill:#2dd4bf;stroke:#2dd4bf}
.gate .shape,.gate .key{fill:#42300c;stroke:#fbbf24}.gate .badge{fill:#fbbf24;stroke:#fbbf24}
.decision .number,.confidence .number,.gate .number{fill:#0f172a}
.line.way{stroke:#a9b6c9}.head.way{fill:#a9b6c9}
.line.loop{stroke:#fbbf24}.head.loop{fill:#fbbf24}
.line.error{stroke:#f87171}.head.error{fill:#f87171}
.label{stroke:#0f172a}.label.way{fill:#e2e8f0}.label.loop{fill:#fcd34d}.label.error{fill:#fca5a5}
}
";
