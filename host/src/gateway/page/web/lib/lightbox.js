export function openImage() {}
