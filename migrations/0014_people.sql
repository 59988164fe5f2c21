-- Purpose: whoever executes an approved adjustment writes its document.
-- Lock cost: none but on the catalogue.

grant insert on settlement.document to onceper_operator;
