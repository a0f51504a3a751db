// Ids by order: the default ones depend on the path of this folder, and everybody's build must be the same.
module.exports = { optimization: { moduleIds: 'natural' } };
