import statistics as st

data = [2, 4, 4, 4, 5, 5, 7, 9]
print(st.mean(data), st.median(data), st.mode(data), st.pstdev(data), round(st.stdev(data), 6))
print(st.quantiles(data, n=4), st.fmean([1.5, 2.5]), st.multimode("aabbc"))
x, y = [1, 2, 3, 4], [2, 4, 5, 8]
print(round(st.correlation(x, y), 6), st.linear_regression(x, y))
