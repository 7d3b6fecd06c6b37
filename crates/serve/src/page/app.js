document.getElementById("main").textContent = "Repertoire";
