// What is being read is there soon: the page looks again by itself.
setTimeout(() => location.reload(), 1000);
