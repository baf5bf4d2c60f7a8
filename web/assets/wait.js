// Reloads the page until the capture is read.
setTimeout(() => location.reload(), 1000);
